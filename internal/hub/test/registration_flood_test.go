package hub_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
)

// inFlight is by how many requests a bound may be passed: those that the hub handles at the same
// time.
const inFlight = 16

// requestMany makes as many requests at once as the token's own account.
func (f fixture) requestMany(values map[string]string, number int, spec func(int) fleet.ClusterRegistrationSpec) {
	f.t.Helper()
	var all sync.WaitGroup
	for i := range number {
		all.Go(func() {
			if _, err := f.ask(values, spec(i)); err != nil {
				f.t.Errorf("asking: %v", err)
			}
		})
	}
	all.Wait()
}

// requests returns the requests of a token, and their number for each reason.
func (f fixture) requests(token string) ([]fleet.ClusterRegistration, map[string]int) {
	f.t.Helper()
	var list fleet.ClusterRegistrationList
	f.check(f.List(context.Background(), &list, client.InNamespace(f.workspace), client.MatchingLabels{fleet.LabelRegistrationToken: token}))
	reasons := map[string]int{}
	for _, r := range list.Items {
		reasons[r.Status.Reason]++
	}
	return list.Items, reasons
}

func TestAFloodOfRequestsIsBoundedAndKeepsNobodyElseFromJoining(t *testing.T) {
	f := newAlone(t,
		`{"registration":{"maxWaitingPerToken":3,"maxWaitingPerWorkspace":1000,"maxNewClustersPerToken":4,"maxQueuedPerToken":5}}`)
	elsewhere := f.neighbour()
	_, flooding := f.token("flooding", "")
	_, good := f.token("good", "")
	_, others := elsewhere.token("good", "")
	keys := map[string]credential.AnswerKey{}
	for i := range 80 {
		keys[fmt.Sprintf("fake-%d", i)] = answerKey(t)
	}
	f.requestMany(flooding, len(keys), func(i int) fleet.ClusterRegistrationSpec {
		id := fmt.Sprintf("fake-%d", i)
		return fleet.ClusterRegistrationSpec{ClientID: id, AnswerKey: keys[id].Public()}
	})
	f.granted(good, "good", nil)
	elsewhere.granted(others, "good", nil)

	var left []fleet.ClusterRegistration
	f.eventually("the flood is bounded", func() error {
		var reasons map[string]int
		if left, reasons = f.requests("flooding"); reasons["Granted"] != 4 || reasons["TooManyNewClusters"] < 5 || reasons[""] > 0 ||
			len(left) > 4+5+2*3+inFlight {
			return fmt.Errorf("there are %d: %v", len(left), reasons)
		}
		return nil
	})
	if n := len(f.clusters()); n != 4+1 {
		t.Errorf("%d Clusters were made, want 4 for the flood and one for the good agent", n)
	}
	f.eventually("the token says that requests are deleted", func() error {
		return f.event("TooManyRequests", "flooding", "without an answer")
	})
	for _, r := range left {
		if said := r.Status.Message; r.Status.Reason == "TooManyNewClusters" &&
			!strings.Contains(said, "4 new Clusters of ClusterRegistrationToken "+f.workspace+"/flooding have not sent a heartbeat yet") ||
			r.Status.Reason == "TooManyRequests" && !strings.Contains(said, "its agent sends another") {
			t.Errorf("request %s says %q", r.Name, said)
		}
	}

	// Who beats makes room for the next.
	for i := range left {
		if r := &left[i]; r.Status.Granted {
			answer, err := keys[r.Spec.ClientID].Open(string(r.UID), r.Status.Answer)
			f.check(err)
			f.eventually("it beats", func() error { return beat(f.as(answer.Token), answer) })
			break
		}
	}
	f.eventually("a fifth one is granted", func() error {
		if _, reasons := f.requests("flooding"); reasons["Granted"] != 5 {
			return fmt.Errorf("there are %v", reasons)
		}
		return nil
	})
}

func TestRefusedRequestsAreBoundedAndGoodOnesOfTheSameTokenAreGranted(t *testing.T) {
	f := newAlone(t, `{"registration":{"maxWaitingPerToken":1000,"maxWaitingPerWorkspace":6}}`)
	_, values := f.token("flooding", "")
	key := answerKey(t).Public()
	f.requestMany(values, 60, func(int) fleet.ClusterRegistrationSpec { return fleet.ClusterRegistrationSpec{AnswerKey: key} })
	f.eventually("the flood is bounded", func() error {
		left, reasons := f.requests("flooding")
		if reasons["ClientIDMissing"] < 6 || reasons[""] > 0 || len(left) > 2*6+inFlight {
			return fmt.Errorf("there are %d: %v", len(left), reasons)
		}
		return nil
	})
	f.granted(values, "good", nil)
}
