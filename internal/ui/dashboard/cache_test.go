package dashboard

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/kubeclient"
	"github.com/muster-fleet/muster/internal/testkube"
)

// whole are objects with fields that no view shows.
func whole(version string) map[string]client.Object {
	large := strings.Repeat("x", 1000)
	meta := metav1.ObjectMeta{Namespace: "fleet", Name: "web", ResourceVersion: version, Annotations: map[string]string{"a": large},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: large}}}
	picked := placement.PlacementStatus{
		PlacementStatuses: []placement.PerClusterStatus{{ClusterName: large}}, SelectedResources: []placement.ResourceIdentifier{{Name: large}},
	}
	return map[string]client.Object{
		tokens: &fleet.ClusterRegistrationToken{ObjectMeta: meta},
		bundles: &fleet.Bundle{ObjectMeta: meta, Spec: fleet.BundleSpec{Resources: []fleet.BundleResource{{Name: "a", Content: large}}},
			Status: fleet.BundleStatus{PartitionStatus: []fleet.PartitionStatus{{Name: large}}}},
		clusterPlacements: &placement.ClusterResourcePlacement{ObjectMeta: meta, Status: picked},
		placements:        &placement.ResourcePlacement{ObjectMeta: meta, Status: picked},
	}
}

func TestTheRollKeepsTheSameOfAnObjectHoweverItComes(t *testing.T) {
	for resource := range whole("") {
		want := slim(whole("1")[resource])
		for way, comes := range map[string]func(kubeclient.Events[client.Object]) error{
			"a watch-list": func(s kubeclient.Events[client.Object]) error {
				o, err := s.Transformer()(whole("1")[resource])
				return errors.Join(err, s.Replace([]any{o}, "1"))
			},
			"a list":             func(s kubeclient.Events[client.Object]) error { return s.Replace([]any{whole("1")[resource]}, "1") },
			"an event that adds": func(s kubeclient.Events[client.Object]) error { return s.Add(whole("1")[resource]) },
			"an event that changes": func(s kubeclient.Events[client.Object]) error {
				return errors.Join(s.Replace([]any{whole("0")[resource]}, "0"), s.Update(whole("1")[resource]))
			},
		} {
			r := newFleetCache()
			if err := comes(r.store(resource)); err != nil {
				t.Fatal(err)
			}
			all, _ := r.of(resource) // it may not have been listed
			if diff := cmp.Diff(want, all[0].object); diff != "" {
				t.Errorf("of %s that come by %s (-want +got):\n%s", resource, way, diff)
			}
		}
	}
}

// TestTheRollKeepsNothingWholeOfWhatAWatchBrings has a Bundle change that is kept already,
// on a real API server.
func TestTheRollKeepsNothingWholeOfWhatAWatchBrings(t *testing.T) {
	r := newRig(t)
	bundle := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: r.workspace("large"), Name: "web"}}
	r.check(client.IgnoreAlreadyExists(r.Create(t.Context(), bundle)))
	s, err := NewShared(t.Context(), Options{Config: r.Config})
	r.check(err)
	r.serve(s)
	r.check(r.Get(t.Context(), client.ObjectKeyFromObject(bundle), bundle))
	bundle.Spec.Resources = []fleet.BundleResource{{
		Name: "a.yaml", Content: fmt.Sprintf("%d", len(bundle.ResourceVersion)) + strings.Repeat("x", 100<<10),
	}}
	r.check(r.Update(t.Context(), bundle))
	testkube.Eventually(t, "the cache has the change", func() error {
		entries, err := s.cache.named(bundles, "large/web")
		if err != nil || len(entries) != 1 || entries[0].resourceVersion != bundle.ResourceVersion {
			return fmt.Errorf("it has %d of it: %w", len(entries), err)
		}
		kept := entries[0].object.(*fleet.Bundle)
		if len(kept.Spec.Resources) > 0 || len(kept.ManagedFields) > 0 {
			t.Errorf("it keeps %d resources and %d managed fields", len(kept.Spec.Resources), len(kept.ManagedFields))
		}
		return nil
	})
}
