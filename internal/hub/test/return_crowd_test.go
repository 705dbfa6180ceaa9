package hub_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/naming"
)

// inParallel runs jobs, a few at a time.
func inParallel(number int, job func(int)) {
	var all sync.WaitGroup
	places := make(chan struct{}, 8)
	for i := range number {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			job(i)
		})
	}
	all.Wait()
}

// admitted registers agents with these client IDs at once, and returns what the hub answered.
func (f fixture) admitted(values map[string]string, ids []string) map[string]credential.Answer {
	f.t.Helper()
	var mu sync.Mutex
	answers := map[string]credential.Answer{}
	inParallel(len(ids), func(i int) {
		key := answerKey(f.t)
		request, err := f.ask(values, f.signed(f.keyOf(ids[i]), values, ids[i], key))
		if err != nil {
			f.t.Errorf("asking as %s: %v", ids[i], err)
			return
		}
		f.untilState(&request, fleet.RegistrationGranted, "Granted")
		answer, err := key.Open(string(request.UID), request.Status.Answer)
		if err != nil || answer.Reconnect == "" {
			f.t.Errorf("the answer to %s has the token %q: %v", ids[i], answer.Reconnect, err)
		}
		mu.Lock()
		defer mu.Unlock()
		answers[ids[i]] = answer
	})
	return answers
}

// refusals counts the requests of some client IDs that the hub says are too many, or deletes before
// it has granted them.
func (f fixture) refusals(ids []string) (count func() int) {
	f.t.Helper()
	seen := f.follow(&fleet.ClusterRegistrationList{}, client.InNamespace(f.workspace))
	of := map[string]bool{}
	for _, id := range ids {
		of[id] = true
	}
	var refused atomic.Int64
	go func() {
		for event := range seen {
			r, ok := event.Object.(*fleet.ClusterRegistration)
			if ok && of[r.Spec.ClientID] && (r.Status.Reason == "TooManyRequests" || event.Type == "DELETED" && !r.Status.Granted) {
				refused.Add(1)
			}
		}
	}()
	return func() int { return int(refused.Load()) }
}

// comeBack has the agents ask at once to be members again, with the token that all of them have,
// and waits until each is granted.
func (f fixture) comeBack(answers map[string]credential.Answer, ids []string) {
	f.t.Helper()
	requests := make([]fleet.ClusterRegistration, len(ids))
	var all sync.WaitGroup
	for i, id := range ids {
		all.Go(func() {
			values := map[string]string{"token": answers[id].Reconnect}
			r, err := f.ask(values, f.signed(f.keyOf(id), values, id, answerKey(f.t)))
			if err != nil {
				f.t.Errorf("%s asks to come back: %v", id, err)
			}
			requests[i] = r
		})
	}
	all.Wait()
	for i := range requests {
		f.untilState(&requests[i], fleet.RegistrationGranted, "Granted")
	}
}

// TestACrowdThatComesBackIsGranted has more members of a workspace come back at once than one token
// may have requests waiting.
func TestACrowdThatComesBackIsGranted(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	var ids []string
	for i := range 150 {
		ids = append(ids, fmt.Sprintf("crowd-%d", i))
	}
	answers := f.admitted(values, ids)
	refused := f.refusals(ids)
	f.comeBack(answers, ids)
	if n := refused(); n > 0 {
		t.Errorf("%d were told to wait, or deleted", n)
	}
}

// TestARevokedMemberThatFloodsKeepsNoOtherFromComingBack uses the token to come back with, which
// all members of the workspace share.
func TestARevokedMemberThatFloodsKeepsNoOtherFromComingBack(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	ids := []string{"good-0", "good-1", "good-2", "good-3", "good-4"}
	answers := f.admitted(values, append([]string{"flooder"}, ids...))
	f.check(revoke(f.Client, f.clusterRecord(naming.Cluster("flooder")), `"true"`))
	f.untilRevoked(naming.Cluster("flooder"))
	refused := f.refusals(ids)
	flood := func(from, number int) {
		inParallel(number, func(i int) {
			spec := fleet.ClusterRegistrationSpec{ClientID: fmt.Sprintf("flood-%d", from+i)}
			if _, err := f.ask(map[string]string{"token": answers["flooder"].Reconnect}, spec); err != nil && !apierrors.IsTooManyRequests(err) {
				t.Errorf("flooding: %v", err)
			}
		})
	}
	flood(0, 150)
	f.eventually("the flood is refused", func() error {
		var list fleet.ClusterRegistrationList
		if err := f.List(context.Background(), &list, client.InNamespace(f.workspace)); err != nil {
			return err
		}
		for _, r := range list.Items {
			if r.Spec.AnswerKey == nil && r.Status.Reason == "" {
				return fmt.Errorf("%s is not read yet", r.Name)
			}
		}
		return nil
	})
	var more sync.WaitGroup
	more.Go(func() { flood(150, 50) })
	f.comeBack(answers, ids)
	more.Wait()
	if n := refused(); n > 0 {
		t.Errorf("%d of the others were told to wait, or deleted", n)
	}
}
