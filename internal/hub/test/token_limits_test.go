package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
)

// asking is a request of a native agent.
func (f fixture) asking(values map[string]string, clientID string) fleet.ClusterRegistration {
	f.t.Helper()
	return f.mustAsk(values, fleet.ClusterRegistrationSpec{ClientID: clientID, AnswerKey: answerKey(f.t).Public()})
}

func TestOfAHundredAgentsWithATokenForOneOneBecomesAMember(t *testing.T) {
	f := newAlone(t, `{"registration":{"maxWaitingPerToken":1000,"maxWaitingPerWorkspace":1000}}`)
	values := f.stampingToken("single", fleet.ClusterRegistrationTokenSpec{MaxRegistrations: new(int32(1))})
	racers := make([]fleet.ClusterRegistrationSpec, 100)
	for i := range racers {
		id := fmt.Sprintf("racer-%d", i)
		racers[i] = f.signed(f.keyOf(id), values, id, answerKey(t))
	}
	f.requestMany(values, len(racers), func(i int) fleet.ClusterRegistrationSpec { return racers[i] })
	var winner string
	f.eventually("one is granted and the others are denied", func() error {
		all, reasons := f.requests("single")
		if reasons["Granted"] != 1 || reasons["TokenUsedUp"] != len(racers)-1 {
			return fmt.Errorf("they are %v", reasons)
		}
		for _, r := range all {
			if r.Status.Granted {
				winner = r.Spec.ClientID
			}
		}
		return nil
	})
	if n := len(f.clusters()); n != 1 {
		t.Errorf("there are %d Clusters", n)
	}
	f.eventually("the token says so", func() error {
		var token fleet.ClusterRegistrationToken
		if err := f.get(&token, f.workspace, "single"); err != nil {
			return err
		}
		if s := token.Status; s.Used != "1/1" || s.LastUsed == nil || len(s.Clusters) != 1 || s.Clusters[0] != naming.Cluster(winner) {
			return fmt.Errorf("its status is %+v", s)
		}
		return nil
	})
	f.granted(values, winner, nil) // again
}

func TestATokenForOneClusterRegistersNoOther(t *testing.T) {
	f := newFixture(t)
	values := f.stampingToken("for-web", fleet.ClusterRegistrationTokenSpec{ClusterName: "web", Description: "the web shop in Oslo"})
	if r := f.granted(values, "oslo", nil); r.Status.ClusterName != "web" {
		t.Errorf("Cluster %s was registered, want web", r.Status.ClusterName)
	}
	other := f.asking(values, "bergen")
	f.untilState(&other, fleet.RegistrationDenied, "TokenBoundElsewhere")
	f.granted(values, "oslo", nil)

	bound := f.stampingToken("for-bergen", fleet.ClusterRegistrationTokenSpec{ClientID: "bergen"})
	other = f.asking(bound, "oslo")
	f.untilState(&other, fleet.RegistrationDenied, "TokenBoundElsewhere")
	f.granted(bound, "bergen", nil)
}

// TestARequestIsAttributedToTheTokenThatMadeIt plays an agent that says nothing of its token, to
// escape what the token does not allow.
func TestARequestIsAttributedToTheTokenThatMadeIt(t *testing.T) {
	f := newFixture(t)
	values := f.stampingToken("for-bergen", fleet.ClusterRegistrationTokenSpec{ClientID: "bergen", Labels: map[string]string{"env": "dev"}})
	delete(values, "tokenName")
	r := f.mustAsk(values, fleet.ClusterRegistrationSpec{ClientID: "oslo", ClientRandom: "r4nd0m"})
	f.untilState(&r, fleet.RegistrationDenied, "TokenBoundElsewhere")
	if asker := r.Annotations[fleet.AnnotationRequester]; !strings.HasPrefix(asker, "system:serviceaccount:"+f.workspace+":for-bergen-") {
		t.Errorf("it is attributed to %q", asker)
	}
	f.legacyJoin(values, "bergen")
	f.labelled("bergen", map[string]string{"env": "dev"})
}

func TestARequestWaitsForTheApprovalOfSomebodyWhoMayApprove(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	values := f.stampingToken("careful", fleet.ClusterRegistrationTokenSpec{Approval: fleet.ApprovalManual})
	r := f.asking(values, "web")
	f.untilState(&r, fleet.RegistrationPending, "ApprovalRequired")
	command := fmt.Sprintf("kubectl -n %s annotate clusterregistration %s muster/approved=true", f.workspace, r.Name)
	if !strings.Contains(r.Status.Message, command) {
		t.Errorf("%q is missing in %q", command, r.Status.Message)
	}
	if n := len(f.clusters()); n != 0 {
		t.Errorf("there are %d Clusters before anybody has approved", n)
	}

	// The holder of the token cannot bring the approval along, nor can a tenant who may
	// edit requests give it.
	forged := &fleet.ClusterRegistration{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "request-", Namespace: f.workspace, Annotations: map[string]string{fleet.AnnotationApproved: "true"},
		},
		Spec: fleet.ClusterRegistrationSpec{ClientID: "forged", AnswerKey: answerKey(t).Public()},
	}
	f.eventually("the API server refuses a request that is approved", func() error {
		if err := f.as(values["token"]).Create(ctx, forged.DeepCopy()); !apierrors.IsForbidden(err) ||
			!strings.Contains(err.Error(), "verb approve") {
			return fmt.Errorf("creating it: %v", err)
		}
		return nil
	})
	approve := func(by client.Client, says string) error {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, fleet.AnnotationApproved, says)
		return by.Patch(ctx, r.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
	}
	rules := func(verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"clusterregistrations"}, Verbs: verbs}
	}
	editor, _ := f.userWith(f.workspace, "editor", rules("get", "list", "update", "patch"))
	f.eventually("an editor of requests may not approve", func() error {
		if err := approve(editor, "true"); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "verb approve") {
			return fmt.Errorf("approving: %v", err)
		}
		return nil
	})

	// An admin who creates a request that is approved has to approve it again, because the hub cannot
	// tell it from one of the agent's where no policy is served.
	forged.Labels = map[string]string{fleet.LabelRegistrationToken: "careful"}
	f.check(f.Create(ctx, forged))
	f.untilState(forged, fleet.RegistrationPending, "ApprovedTooEarly")

	approver, _ := f.userWith(f.workspace, "approver", rules("get", "patch", "approve"))
	f.eventually("an approver approves", func() error { return approve(approver, "true") })
	f.untilState(&r, fleet.RegistrationGranted, "Granted")

	r = f.asking(values, "db")
	f.untilState(&r, fleet.RegistrationPending, "ApprovalRequired")
	f.check(approve(approver, "false"))
	f.untilState(&r, fleet.RegistrationDenied, "NotApproved")
}
