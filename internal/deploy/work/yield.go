package work

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/csaupgrade"

	delivered "github.com/muster-fleet/muster/internal/delivery/manifest"
	"github.com/muster-fleet/muster/internal/deploy/applied"
)

// target is the object to apply a manifest to, or to compare it with.
type target struct {
	of dynamic.ResourceInterface
	manifest
	// full is set if fields missing from the manifest count as differences too.
	full bool
	// self is the AppliedWork of the manifest, beside are all manifests of the Work.
	self   owner
	beside []manifest
	// scaler has the bounds of the object's autoscaler; nil if it was not looked up.
	scaler *delivered.Bounds
}

func (p *pass) target(c *Controller, m manifest, self owner) target {
	return target{
		of: c.objects.Resource(m.resource).Namespace(m.key.Namespace), manifest: m, full: p.strategy.full, self: self, beside: p.manifests,
	}
}

// yield keeps the fields of the object owned by others, see delivered.Rows.
func (c *Controller) yield(ctx context.Context, t *target, wanted, found *unstructured.Unstructured) error {
	if delivered.Rescaled(wanted, found) {
		live, err := applied.Scalers(ctx, c.objects, t.key.Namespace)
		if err != nil {
			return err
		}
		t.scaler = delivered.BoundsOf(t.scalers(live), wanted)
	}
	if delivered.Yield(wanted, found, fieldOwner, t.scaler, t.ignored) {
		wanted.SetResourceVersion(found.GetResourceVersion())
	}
	return nil
}

// scalers returns the autoscalers in the namespace after this pass. The pass may change or delete
// some.
func (t *target) scalers(live []*unstructured.Unstructured) []*unstructured.Unstructured {
	var brought []*unstructured.Unstructured
	for _, m := range t.beside {
		if m.key.GroupKind == delivered.ScalerKind && m.key.Namespace == t.key.Namespace && m.problem == "" {
			brought = append(brought, m.object())
		}
	}
	return delivered.Scalers(live, brought, func(scaler *unstructured.Unstructured) bool {
		is := summarize(scaler)
		return t.self.uid != "" && is.ownedBy(t.self.uid) && len(is.works()) == 1
	})
}

// upgradeFields takes over fields applied by KubeFleet's agent through a merge on the client, and
// data from the stringData of earlier versions. Fields removed from a manifest can then be removed
// from the object.
func (c *Controller) upgradeFields(ctx context.Context, of dynamic.ResourceInterface, is *unstructured.Unstructured) error {
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(is, sets.New(fieldOwner), fieldOwner)
	if err == nil && patch == nil && is.GetKind() == secretKind {
		patch, err = applied.TextsPatch(is, fieldOwner)
	}
	if err != nil || patch == nil {
		return err
	}
	_, err = of.Patch(ctx, is.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: fieldOwner})
	return err
}
