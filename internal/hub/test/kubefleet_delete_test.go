package hub_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// isGone waits until an object is not there.
func (f fixture) isGone(what string, o client.Object) {
	f.t.Helper()
	f.eventually(what+" is gone", func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading it: %v; it has the finalizers %v", err, o.GetFinalizers())
		}
		return nil
	})
}

// TestAPlacementOfKubeFleetsHubIsDeletedWithWhatThatHubLeftOfIt deletes one whose bindings and
// finalizers are KubeFleet's, and looks at what resembles them.
func TestAPlacementOfKubeFleetsHubIsDeletedWithWhatThatHubLeftOfIt(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	h := theirs{f}
	m := f.scripted("inherited", script{})
	m.label("env=prod")
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", f.shop()))
	f.untilOn(crp, m)
	f.patch(crp, `{"metadata":{"finalizers":["kubernetes-fleet.io/crp-cleanup","kubernetes-fleet.io/scheduler-cleanup","example.com/hold"]}}`)
	other := &placement.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: crp.Name + "-2"}}
	other.Spec.ResourceSelectors = []placement.ResourceSelector{{Version: "v1", Kind: "Namespace", Name: "none-" + f.workspace}}
	f.check(f.Create(ctx, other))
	t.Cleanup(func() { f.dispose(other) })

	const kind = "ClusterResourceBinding"
	binding := h.leaves(kind, crp.Name+"-"+m.name+"-1a2b3c4d", crp.Name)
	held := h.leaves(kind, crp.Name+"-held-1a2b3c4d", crp.Name)
	f.patch(held, `{"metadata":{"finalizers":["kubernetes-fleet.io/scheduler-cleanup","kubernetes-fleet.io/unheard-of"]}}`)
	similar := h.leaves(kind, other.Name+"-"+m.name+"-1a2b3c4d", other.Name)
	claimed := h.leaves(kind, crp.Name+"-claimed-1a2b3c4d", crp.Name)
	f.patch(claimed, fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"placement.kubernetes-fleet.io/v1beta1",
		"kind":"ClusterResourcePlacement","name":%q,"uid":%q,"controller":true}]}}`, other.Name, other.UID))
	f.patch(binding, fmt.Sprintf(`{"spec":{"targetCluster":%q}}`, m.name))
	envelope := h.work(m, crp.Name, crp.Name+"-envelope-7f5c")

	f.check(f.Delete(ctx, crp))
	f.isGone("the Work of an envelope, whose binding is of this placement,", envelope)
	f.isGone("the binding", binding)
	f.eventually("the placement says which finalizer keeps it", func() error {
		if err := f.Get(ctx, client.ObjectKeyFromObject(crp), crp); err != nil {
			return err
		}
		want := "ClusterResourceBinding " + held.GetName() + " has the finalizers kubernetes-fleet.io/unheard-of"
		if state := view.State(crp); state != view.StateDeleting || !strings.Contains(crp.Status.Message, want) {
			return fmt.Errorf("it is %s: %s", state, crp.Status.Message)
		}
		return nil
	})
	f.check(f.Get(ctx, client.ObjectKeyFromObject(held), held))
	if got := held.GetFinalizers(); !slices.Equal(got, []string{"kubernetes-fleet.io/unheard-of"}) || held.GetDeletionTimestamp() == nil {
		t.Errorf("the binding that is held has the finalizers %v", got)
	}
	if crp.Generation != 2 { // by which the hub knows that no version of it is kept
		t.Errorf("a placement that was created and deleted has the generation %d", crp.Generation)
	}
	if !slices.Contains(crp.Finalizers, "kubernetes-fleet.io/scheduler-cleanup") {
		t.Errorf("the placement lost the finalizer before the bindings were gone: %v", crp.Finalizers)
	}
	f.patch(held, `{"metadata":{"finalizers":null}}`)

	f.eventually("the placement has the finalizer that is nobody's of both hubs, and says so", func() error {
		if err := f.Get(ctx, client.ObjectKeyFromObject(crp), crp); err != nil {
			return err
		}
		if !slices.Equal(crp.Finalizers, []string{"example.com/hold"}) || !strings.Contains(crp.Status.Message, "finalizer example.com/hold") {
			return fmt.Errorf("it has %v and says %q", crp.Finalizers, crp.Status.Message)
		}
		return nil
	})
	f.patch(crp, `{"metadata":{"finalizers":null}}`)
	f.isGone("the placement", crp)
	for what, o := range map[string]*unstructured.Unstructured{"of another placement": similar, "with another controller": claimed} {
		f.check(f.Get(ctx, client.ObjectKeyFromObject(o), o))
		if o.GetDeletionTimestamp() != nil || len(o.GetFinalizers()) != 1 {
			t.Errorf("a binding %s was touched: %v", what, o.Object["metadata"])
		}
	}
}
