package decisions

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func edge() Decision {
	return Decision{
		Owner: &fleet.ClusterGroup{ObjectMeta: metav1.ObjectMeta{
			Namespace: "clusters", Name: "edge", UID: "1", Labels: map[string]string{labelWorkload: "web", "other": "x"},
		}},
		Kind: fleet.GroupVersion.WithKind("ClusterGroup"), Prefix: "clustergroup", Reason: "selected by ClusterGroup edge",
	}
}

func TestADecisionIsOneObjectPerHundredMembers(t *testing.T) {
	for members, want := range map[int][]int{0: {0}, 1: {1}, 100: {100}, 101: {100, 1}, 250: {100, 100, 50}} {
		var names []string
		for i := range members {
			names = append(names, fmt.Sprintf("clusters.m%04d", members-i))
		}
		var got []int
		for i, slice := range slicesOf(edge(), "fleet-inventory", names) {
			got = append(got, len(slice.Object["decisions"].([]any)))
			if name := fmt.Sprintf("clustergroup-edge-%d", i); slice.GetName() != name || slice.GetNamespace() != "clusters" {
				t.Errorf("%d members: it is %s/%s", members, slice.GetNamespace(), slice.GetName())
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d members (-want +got):\n%s", members, diff)
		}
		if !slices.IsSorted(names) {
			t.Errorf("%d members are not sorted", members)
		}
	}
}

func TestADecisionNamesProfilesAndItsOwner(t *testing.T) {
	got := slicesOf(edge(), "fleet-inventory", []string{"clusters.b", "clusters.a"})
	ref := func(name string) map[string]any {
		return map[string]any{"clusterProfileRef": map[string]any{"namespace": "fleet-inventory", "name": name},
			"reason": "selected by ClusterGroup edge"}
	}
	want := map[string]any{
		"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "PlacementDecision", "schedulerName": "muster",
		"metadata": map[string]any{
			"namespace": "clusters", "name": "clustergroup-edge-0",
			"labels": map[string]any{"fleet.cattle.io/managed": "true", labelKey: "clustergroup-edge", labelIndex: "0", labelWorkload: "web"},
			"ownerReferences": []any{map[string]any{"apiVersion": "fleet.cattle.io/v1alpha1", "kind": "ClusterGroup", "name": "edge", "uid": "1",
				"controller": true}},
		},
		"decisions": []any{ref("clusters.a"), ref("clusters.b")},
	}
	if diff := cmp.Diff([]map[string]any{want}, []map[string]any{got[0].Object}); diff != "" || len(got) != 1 {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestFewerMembersAreNoticed(t *testing.T) {
	one, two := slicesOf(edge(), "i", []string{"a"}), slicesOf(edge(), "i", []string{"a", "b"})
	have := map[types.NamespacedName]*unstructured.Unstructured{{Name: "x"}: two[0]}
	if !shrinks(have, one) || shrinks(have, two) || shrinks(nil, one) {
		t.Error("a decision with fewer members")
	}
}

func TestAHubWithoutItsRightsDropsOnlyThisFailure(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "placementdecisions"}, "a", errors.New("no rule"))
	down := errors.New("the API server does not answer")
	if err := withRight(t.Context(), []error{forbidden, nil, forbidden}); err != nil {
		t.Errorf("forbidden deletions: %v", err)
	}
	if err := withRight(t.Context(), []error{forbidden, down}); !errors.Is(err, down) || apierrors.IsForbidden(err) {
		t.Errorf("a forbidden deletion, and another failure: %v", err)
	}
}
