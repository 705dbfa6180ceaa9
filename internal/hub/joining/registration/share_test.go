package registration

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
)

const reconnectAccount = "system:serviceaccount:w:reconnect-0"

// returning is a request with the account that all members of a workspace share.
func returning(uid, clientID string, change ...func(*fleet.ClusterRegistration)) *fleet.ClusterRegistration {
	r := &fleet.ClusterRegistration{
		ObjectMeta: metav1.ObjectMeta{
			UID: types.UID(uid), Name: uid, Namespace: "w", Annotations: map[string]string{fleet.AnnotationRequester: reconnectAccount},
		},
		Spec: fleet.ClusterRegistrationSpec{ClientID: clientID},
	}
	for _, c := range change {
		c(r)
	}
	return r
}

func refused(r *fleet.ClusterRegistration) {
	r.Status.State, r.Status.Reason = fleet.RegistrationDenied, "ReconnectRefused"
}

func provedKey(r *fleet.ClusterRegistration) {
	r.Spec.AgentKey = []byte("key of " + r.Spec.ClientID)
	r.Status.State, r.Status.Reason = fleet.RegistrationWaiting, "NamespaceTerminating"
	r.Status.ApprovedReason, r.Status.ApprovedGeneration = reasons.KeyProved, r.Generation
}

func TestARequestThatIsSignedWithTheKeyOfItsClusterIsFree(t *testing.T) {
	if is := costOfState(fleet.RegistrationWaiting, reasons.KeyProved); is != free {
		t.Errorf("the first step of a return costs %q", is)
	}
}

// TestOneMemberThatIsRefusedKeepsNoOtherOut has one member use the account that all members of its
// workspace share until it may not any more.
func TestOneMemberThatIsRefusedKeepsNoOtherOut(t *testing.T) {
	most := settings.Registration{MaxWaitingPerToken: 100, MaxWaitingPerWorkspace: 1000}
	hub := newTracker(nil)
	for i := range 300 {
		hub.trackRequest(returning(fmt.Sprintf("flood-%d", i), "flooder", refused))
	}
	limited := func(r *fleet.ClusterRegistration, d decision) decision {
		return limit(d, observed{workspace: "w", created: start}, hub.others(r), most, start)
	}
	no := denied("ReconnectRefused", "no")
	if d := limited(returning("more", "flooder"), no); d.action != remove {
		t.Errorf("what comes beyond the share of one member is %+v", d)
	}
	another := &fleet.ClusterRegistration{
		ObjectMeta: metav1.ObjectMeta{Namespace: "w", Labels: map[string]string{fleet.LabelRegistrationToken: "t"}},
	}
	if d := limited(another, denied("TokenExpired", "no")); d.state != fleet.RegistrationDenied {
		t.Errorf("the request of a token in the same workspace is %+v", d)
	}
	waits := decision{state: fleet.RegistrationWaiting, reason: "NamespaceTerminating"}
	if d := limited(returning("good", "good", provedKey), waits); d.reason != waits.reason {
		t.Errorf("a request with the key of its Cluster, which has to wait, is %+v", d)
	}
	for i := range 2000 {
		hub.trackRequest(returning(fmt.Sprintf("other-%d", i), fmt.Sprint(i), refused))
	}
	if d := limited(returning("good", "good", provedKey), waits); d.reason != waits.reason {
		t.Errorf("beside a flood with many client IDs it is %+v", d)
	}
	if d := limited(returning("new", "new"), no); d.action != remove {
		t.Errorf("what is refused of an account that floods is %+v", d)
	}
}

func TestTheShareOfAMemberGrowsNotWithTheShareOfAnother(t *testing.T) {
	most := settings.Registration{MaxWaitingPerToken: 100, MaxWaitingPerWorkspace: 1000}
	hub := newTracker(nil)
	for i := range 25 {
		hub.trackRequest(returning(fmt.Sprintf("flood-%d", i), "flooder", refused))
	}
	for name, want := range map[string]string{"flooder": reasons.TooManyRequests, "other": "ReconnectRefused"} {
		d := limit(denied("ReconnectRefused", "no"), observed{workspace: "w", created: start}, hub.others(returning("x", name)),
			most, start.Add(time.Second))
		if d.reason != want {
			t.Errorf("one more of %s is %+v", name, d)
		}
	}
}
