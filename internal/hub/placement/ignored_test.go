package placement

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

func TestARuleThatSelectsNoResourceIsNamed(t *testing.T) {
	web := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "shop", "name": "web"},
	}}
	for want, rules := range map[string][]placement.IgnoredFields{
		"": {{Group: "apps", Kind: "Deployment"}, {Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}},
		"applyStrategy.ignoreDifferences[1] is for kind Deployment and selects no resource of this placement": {
			{Group: "apps", Kind: "Deployment"}, {Kind: "Deployment"},
		},
		"applyStrategy.ignoreDifferences[0] is for kind Deployment.apps and selects no resource of this placement": {
			{Group: "apps", Kind: "Deployment", Name: "other"},
		},
	} {
		o := observed{spec: &placement.PlacementSpec{}}
		o.spec.Strategy.ApplyStrategy = &placement.ApplyStrategy{IgnoreDifferences: rules}
		o.resources.Objects = []*unstructured.Unstructured{web}
		if got := o.idleRules(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := (observed{spec: &placement.PlacementSpec{}}).idleRules(); got != "" {
		t.Errorf("without a strategy: %q", got)
	}
}
