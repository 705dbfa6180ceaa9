package dashboard

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

func TestWhomABundleSelects(t *testing.T) {
	prod := &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}
	b := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet"}}
	b.Spec.Targets = []fleet.BundleTarget{
		{Name: "off", DoNotDeploy: true, ClusterName: "web"},
		{
			ClusterSelector: &metav1.LabelSelector{MatchLabels: prod.MatchLabels,
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "region", Operator: "In", Values: []string{"eu", "us"}}}},
			ClusterGroup: "shops",
		},
		{ClusterGroupSelector: prod},
		{ClusterSelector: &metav1.LabelSelector{}},
		{ClusterSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "region", Operator: "Near"}}}},
		{},
	}
	b.Spec.TargetRestrictions = []fleet.BundleTargetRestriction{{ClusterSelector: prod}}
	targets, restrictions := targetsOf(b)
	if diff := cmp.Diff([]selection{
		{"off", []criterion{{"fleet/web", "/members/fleet/web"}}, true},
		{"", []criterion{{"env=prod,region in (eu,us)", "/?namespace=fleet&selector=env%3Dprod%2Cregion+in+%28eu%2Cus%29"},
			{"in the ClusterGroup shops", ""}}, false},
		{"", []criterion{{"in a ClusterGroup with env=prod", ""}}, false},
		{"", []criterion{{"any labels", "/?namespace=fleet"}}, false},
		{"", []criterion{{`an invalid label selector: "Near" is not a valid label selector operator`, ""}}, false},
		{"", []criterion{{"no member: the target has no criteria", ""}}, false},
	}, targets); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]selection{{"", []criterion{{"env=prod", "/?namespace=fleet&selector=env%3Dprod"}}, false}},
		restrictions); diff != "" {
		t.Error(diff)
	}
}

func TestWhomAPlacementSelects(t *testing.T) {
	anyMember := []selection{{Criteria: []criterion{{"any member", "/"}}}}
	for name, c := range map[string]struct {
		policy *placement.PlacementPolicy
		want   []selection
	}{
		"no policy": {nil, anyMember},
		"any n":     {&placement.PlacementPolicy{PlacementType: placement.PickN, NumberOfClusters: ptr.To[int32](2)}, anyMember},
		"nobody":    {&placement.PlacementPolicy{PlacementType: placement.PickFixed}, nil},
		"some by names": {&placement.PlacementPolicy{PlacementType: placement.PickFixed, ClusterNames: []string{"east", "fleet/web"}},
			[]selection{{Criteria: []criterion{{"east", "/members/east"}}}, {Criteria: []criterion{{"fleet/web", "/members/fleet/web"}}}}},
		"what members have and report": {&placement.PlacementPolicy{Affinity: &placement.Affinity{ClusterAffinity: &placement.ClusterAffinity{
			Required: &placement.ClusterSelector{ClusterSelectorTerms: []placement.ClusterSelectorTerm{
				{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}},
					PropertySelector: &placement.PropertySelector{
						MatchExpressions: []placement.PropertySelectorRequirement{{
							Name: "kubernetes-fleet.io/node-count", Operator: placement.PropertyGreater, Values: []string{"3"},
						}},
					}},
				{},
			}}}}}, []selection{
			{Criteria: []criterion{{"env=prod", "/?selector=env%3Dprod"}, {"kubernetes-fleet.io/node-count Gt 3", ""}}}, {
				Criteria: []criterion{{"any labels", "/"}},
			},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, picksOf(c.policy)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
