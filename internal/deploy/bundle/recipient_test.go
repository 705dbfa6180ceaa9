package bundle

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	contents "github.com/muster-fleet/muster/internal/delivery"
)

// TestABundleDeploymentOfAnotherMemberIsNotDeployed plays a hub that an attacker has tricked into
// writing another member's BundleDeployment into this member's namespace.
func TestABundleDeploymentOfAnotherMemberIsNotDeployed(t *testing.T) {
	r := newRig(t)
	made := r.place("web", fleet.BundleDeploymentOptions{},
		file("web.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {key: a}\n"))
	labelled := made.DeepCopy()
	for key, value := range contents.RecipientLabels("clusters/another", 0) {
		labelled.Labels[key] = value
	}
	r.check(r.kube.Patch(t.Context(), labelled, client.MergeFrom(made)))
	r.start()
	said := r.until("web", fleet.StateErrApplied, "labelled for Cluster clusters/another")
	if _, err := r.data("web"); !apierrors.IsNotFound(err) {
		t.Errorf("it was deployed: %v", err)
	}
	if !strings.Contains(readyMessage(said), "take the labels off") {
		t.Errorf("it says %q", readyMessage(said))
	}
	free := said.DeepCopy()
	for key := range contents.RecipientLabels("clusters/another", 0) {
		delete(free.Labels, key)
	}
	r.check(r.kube.Patch(t.Context(), free, client.MergeFrom(said)))
	r.until("web", fleet.StateReady)
}
