package selection

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func bundleOfSpec(t *testing.T, spec string) *fleet.Bundle {
	t.Helper()
	b := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "app"}}
	if err := yaml.UnmarshalStrict([]byte(spec), &b.Spec); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestMatch(t *testing.T) {
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "c1", Labels: map[string]string{
		"env": "dev", fleet.LabelClusterDisplayName: "Number One",
	}}}
	groups := []fleet.ClusterGroup{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "devs", Labels: map[string]string{"tier": "low"}},
			Spec: fleet.ClusterGroupSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "dev"}}}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "nothing"}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "others"}, Spec: fleet.ClusterGroupSpec{Selector: &metav1.LabelSelector{}}},
	}
	for _, c := range []struct{ name, spec, want string }{
		{"no targets match nothing", `{}`, "[]"},
		{"nor does a target without criteria", `targets: [{}]`, "[]"},
		{"an empty selector matches all", `targets: [{clusterSelector: {}}]`, "[0]"},
		{"a name", `targets: [{clusterName: c1}]`, "[0]"},
		{"another name", `targets: [{clusterName: c2}]`, "[]"},
		{"the name that Rancher shows", `targets: [{clusterName: Number One}]`, "[0]"},
		{"labels", `targets: [{clusterSelector: {matchLabels: {env: dev}}}]`, "[0]"},
		{"other labels", `targets: [{clusterSelector: {matchLabels: {env: prod}}}]`, "[]"},
		{"a group", `targets: [{clusterGroup: devs}]`, "[0]"},
		{"a group that selects nothing", `targets: [{clusterGroup: nothing}]`, "[]"},
		{"a group of another workspace", `targets: [{clusterGroup: others}]`, "[]"},
		{"a group by its labels", `targets: [{clusterGroupSelector: {matchLabels: {tier: low}}}]`, "[0]"},
		{"other labels of a group", `targets: [{clusterGroupSelector: {matchLabels: {tier: high}}}]`, "[]"},
		{"all criteria have to match", `targets: [{clusterName: c1, clusterSelector: {matchLabels: {env: prod}}}]`, "[]"},
		{"the first target counts", `targets: [{clusterName: c2}, {clusterName: c1}, {clusterSelector: {}}]`, "[1]"},
		{"or all of them", `{targetCustomizationMode: AllMatches, targets: [{clusterName: c1}, {clusterName: c2}, {clusterSelector: {}}]}`,
			"[0 2]"},
		{"a first target may say no", `targets: [{clusterName: c1, doNotDeploy: true}, {clusterSelector: {}}]`, "[]"},
		{"one that comes later does not count", `targets: [{clusterSelector: {}}, {clusterName: c1, doNotDeploy: true}]`, "[0]"},
		{"unless all count", `{targetCustomizationMode: AllMatches, targets: [{clusterSelector: {}}, {clusterName: c1, doNotDeploy: true}]}`,
			"[]"},
		{"a restriction that matches", `{targets: [{clusterSelector: {}}], targetRestrictions: [{clusterName: c9}, {clusterGroup: devs}]}`,
			"[0]"},
		{"restrictions of which none matches", `{targets: [{clusterSelector: {}}], targetRestrictions: [{clusterName: c9}]}`, "[]"},
	} {
		m, err := NewMatcher(bundleOfSpec(t, c.spec), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(m.Match(cluster, GroupsOf(cluster, Groups(groups)))); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// TestAGroupThatCannotBeReadIsUnknown has one whose operator is misspelt.
func TestAGroupThatCannotBeReadIsUnknown(t *testing.T) {
	groups := []fleet.ClusterGroup{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "prod", Labels: map[string]string{"tier": "high"}},
			Spec: fleet.ClusterGroupSpec{Selector: &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: "in", Values: []string{"prod"}}}}}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "devs"}, Spec: fleet.ClusterGroupSpec{Selector: &metav1.LabelSelector{}}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "nothing"}},
	}
	for spec, unknown := range map[string]bool{
		`targets: [{clusterGroup: prod}]`:                                                           true,
		`targets: [{clusterGroupSelector: {matchLabels: {tier: high}}}]`:                            true,
		`{targets: [{clusterSelector: {}}], targetRestrictions: [{clusterGroup: prod}]}`:            true,
		`{targets: [{clusterSelector: {}}], rolloutStrategy: {partitions: [{clusterGroup: prod}]}}`: true,
		`targets: [{clusterGroup: devs}]`:                                                           false,
		`targets: [{clusterGroup: nothing}]`:                                                        false,
		`targets: [{clusterSelector: {}}]`:                                                          false,
		`targets: [{clusterGroupSelector: {matchLabels: {tier: low}}}]`:                             false,
	} {
		m, err := NewMatcher(bundleOfSpec(t, spec), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.UnknownGroups(groups); (err != nil) != unknown || err != nil && !strings.Contains(err.Error(), "ClusterGroup clusters/prod") {
			t.Errorf("%s: %v", spec, err)
		}
	}
}

func TestTheBundleOfAnAgentIsForItsOwnClusterOnly(t *testing.T) {
	own := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "a", UID: "1"}}
	namesake := &fleet.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "b", UID: "2", Labels: map[string]string{fleet.LabelClusterDisplayName: "a"}},
	}
	bundle := &fleet.Bundle{
		ObjectMeta: metav1.ObjectMeta{
			Labels:          map[string]string{fleet.LabelAgent: "v"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(own, fleet.GroupVersion.WithKind("Cluster"))},
		},
		Spec: fleet.BundleSpec{Targets: []fleet.BundleTarget{{ClusterName: "a"}}},
	}
	m, err := NewMatcher(bundle, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Match(own, nil)) != 1 || m.Match(namesake, nil) != nil {
		t.Errorf("it is for its own Cluster: %v, for another one: %v", m.Match(own, nil), m.Match(namesake, nil))
	}
}
