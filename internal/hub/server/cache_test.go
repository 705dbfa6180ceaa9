package server

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	inventoryv1alpha1 "github.com/muster-fleet/muster/api/inventory/v1alpha1"
	musterv1alpha1 "github.com/muster-fleet/muster/api/muster/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

// TestTheCacheKeepsNoManagedFields: they are a third of a small object, and no controller reads
// them there.
func TestTheCacheKeepsNoManagedFields(t *testing.T) {
	options := cacheOptions("cattle-fleet-system", nil)
	kinds := []client.Object{
		&fleet.Cluster{}, &fleet.ClusterRegistrationToken{}, &inventoryv1alpha1.ClusterProfile{}, &musterv1alpha1.AuditEntry{},
		kube.CoreMetadata("Namespace"),
	}
	for kind := range options.ByObject {
		kinds = append(kinds, kind)
	}
	for _, kind := range kinds {
		object := kind.DeepCopyObject().(client.Object)
		object.SetName("a")
		object.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl"}})
		transform := options.DefaultTransform
		if own := options.ByObject[kind].Transform; own != nil {
			transform = own
		}
		kept, err := transform(object)
		if err != nil {
			t.Errorf("%T: %v", kind, err)
		} else if kept.(client.Object).GetManagedFields() != nil || kept.(client.Object).GetName() != "a" {
			t.Errorf("%T: the cache keeps %v", kind, kept)
		}
	}
}
