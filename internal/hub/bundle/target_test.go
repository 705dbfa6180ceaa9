package bundle

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
		{"or all of them", `{targetCustomizationMode: AllMatches, targets: [{clusterName: c1}, {clusterName: c2}, {clusterSelector: {}}]}`, "[0 2]"},
		{"a first target may say no", `targets: [{clusterName: c1, doNotDeploy: true}, {clusterSelector: {}}]`, "[]"},
		{"one that comes later does not count", `targets: [{clusterSelector: {}}, {clusterName: c1, doNotDeploy: true}]`, "[0]"},
		{"unless all count", `{targetCustomizationMode: AllMatches, targets: [{clusterSelector: {}}, {clusterName: c1, doNotDeploy: true}]}`, "[]"},
		{"a restriction that matches", `{targets: [{clusterSelector: {}}], targetRestrictions: [{clusterName: c9}, {clusterGroup: devs}]}`, "[0]"},
		{"restrictions of which none matches", `{targets: [{clusterSelector: {}}], targetRestrictions: [{clusterName: c9}]}`, "[]"},
	} {
		m, err := newMatcher(bundleOfSpec(t, c.spec))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(m.match(cluster, groupsOf(cluster, groups))); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func TestWhatCannotSelectIsRefusedWithItsPath(t *testing.T) {
	for spec, want := range map[string]string{
		`targets: [{}, {clusterSelector: {matchExpressions: [{key: a, operator: Is}]}}]`: "targets[1].clusterSelector",
		`targetRestrictions: [{clusterGroupSelector: {matchLabels: {"a b": c}}}]`:        "targetRestrictions[0].clusterGroupSelector",
		`rolloutStrategy: {partitions: [{clusterSelector: {matchLabels: {a: "b c"}}}]}`:  "rolloutStrategy.partitions[0].clusterSelector",
		`targetCustomizationMode: SomeMatches`:                                           "targetCustomizationMode",
		`rolloutStrategy: {maxUnavailable: some}`:                                        "rolloutStrategy.maxUnavailable",
	} {
		if _, err := newMatcher(bundleOfSpec(t, spec)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", spec, err)
		}
	}
}

func TestTheBundleOfAnAgentIsForItsOwnClusterOnly(t *testing.T) {
	own := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "a", UID: "1"}}
	namesake := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "b", UID: "2", Labels: map[string]string{fleet.LabelClusterDisplayName: "a"}}}
	bundle := &fleet.Bundle{
		ObjectMeta: metav1.ObjectMeta{
			Labels:          map[string]string{fleet.LabelAgent: "v"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(own, fleet.GroupVersion.WithKind("Cluster"))},
		},
		Spec: fleet.BundleSpec{Targets: []fleet.BundleTarget{{ClusterName: "a"}}},
	}
	m, err := newMatcher(bundle)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.match(own, nil)) != 1 || m.match(namesake, nil) != nil {
		t.Errorf("it is for its own Cluster: %v, for another one: %v", m.match(own, nil), m.match(namesake, nil))
	}
}
