package dashboard

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
)

func TestARequestIsComparedWithTheClusterThatItAsksToBe(t *testing.T) {
	key := []byte("a public key")
	r := &fleet.ClusterRegistration{Spec: fleet.ClusterRegistrationSpec{
		ClientID: "edge-1", AgentKey: key, ClusterLabels: map[string]string{"env": "prod", "zone": "a"},
	}}
	verdicts := func(known *fleet.Cluster) map[string]string {
		found := map[string]string{}
		for _, c := range comparisonsOf(r, known) {
			found[c.Name] = c.Verdict()
		}
		return found
	}
	want := map[string]string{"Client ID": "new", "Key of the agent": "new", "Label env": "new", "Label zone": "new"}
	if diff := cmp.Diff(want, verdicts(nil)); diff != "" {
		t.Error(diff)
	}
	known := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{
		Labels: map[string]string{"env": "lab"}, Annotations: map[string]string{fleet.AnnotationAgentKey: credential.Fingerprint(key)},
	}, Spec: fleet.ClusterSpec{ClientID: "edge-1"}}
	want = map[string]string{"Client ID": "same", "Key of the agent": "same", "Label env": "different", "Label zone": "new"}
	if diff := cmp.Diff(want, verdicts(known)); diff != "" {
		t.Error(diff)
	}
	r.Spec.AgentKey = nil
	if got := verdicts(nil)["Key of the agent"]; got != "none" {
		t.Errorf("without a key on either side it is %q", got)
	}
	if got := verdicts(known)["Key of the agent"]; got != "not in the request" {
		t.Errorf("a request without the key of the Cluster is %q", got)
	}
}

func TestASupersededRequestIsNamedSoAndOffersNothing(t *testing.T) {
	r := &fleet.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{
		Namespace: "fleet", Name: "old", Annotations: map[string]string{fleet.AnnotationApproved: "true"},
	}, Status: fleet.ClusterRegistrationStatus{State: fleet.RegistrationDenied, Reason: stateSuperseded}}
	if got := (request{entry: entryOf(requests, r)}); got.State() != "Superseded" || got.Again() {
		t.Errorf("it is %s, to be undone: %t", got.State(), got.Again())
	}
	r.Status.Reason = fleet.ReasonNotApproved
	if got := (request{entry: entryOf(requests, r)}); got.State() != "Denied" || !got.Again() {
		t.Errorf("a denied one is %s, to be undone: %t", got.State(), got.Again())
	}
}
