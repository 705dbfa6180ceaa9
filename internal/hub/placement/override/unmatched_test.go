package override

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func TestAResourceOverrideNeedsNoScope(t *testing.T) {
	inApp, elsewhere := types.NamespacedName{Namespace: "app", Name: "web"}, types.NamespacedName{Namespace: "other", Name: "web"}
	const named, inNamespace = onConfig + "placement: {name: web, scope: Cluster}\n", onConfig + "placement: {name: web, scope: Namespaced}\n"
	for name, row := range map[string]struct {
		of                     Override
		cluster, inApp, others bool
	}{
		"a ResourceOverride with the default of scope": {namespaced(t, "o", named), true, true, false},
		"a ResourceOverride for its namespace":         {namespaced(t, "o", inNamespace), false, true, false},
		"a ResourceOverride for another placement": {
			namespaced(t, "o", onConfig+"placement: {name: wbe, scope: Cluster}\n"), false, false, false,
		},
		"a ResourceOverride for all": {namespaced(t, "o", onConfig), true, true, true},
		"a ClusterResourceOverride":  {cluster(t, "o", onRole+"placement: {name: web, scope: Cluster}\n"), true, false, false},
	} {
		got := []bool{row.of.For(crp), row.of.For(inApp), row.of.For(elsewhere)}
		if diff := cmp.Diff([]bool{row.cluster, row.inApp, row.others}, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestOverridesThatMatchNothingAreNamed(t *testing.T) {
	objects := []*unstructured.Unstructured{object(t, config)}
	const rule = "{op: add, path: /data/a, value: b}"
	const named = "placement: {name: web, scope: Cluster}\n"
	all := []Override{
		namespaced(t, "fits", onConfig+named+patches(inProd, rule)),
		namespaced(t, "for-all", "resourceSelectors: [{group: '', version: v1, kind: Secret, name: x}]\n"+patches(everywhere, rule)),
		namespaced(t, "mistyped", "resourceSelectors: [{group: apps, version: v1, kind: Deployment, name: x}]\n"+named+patches(everywhere, rule)),
		namespaced(t, "of-others", "resourceSelectors: [{group: '', version: v1, kind: Secret, name: x}]\n"+
			"placement: {name: other, scope: Cluster}\n"+patches(everywhere, rule)),
		cluster(t, "roles", onRole+named+patches(everywhere, rule)),
	}
	want := []string{
		"ClusterResourceOverride roles names this placement, which does not select its ClusterRole reader of rbac.authorization.k8s.io/v1",
		"ResourceOverride app/mistyped names this placement, which does not select its Deployment x of apps/v1",
	}
	if diff := cmp.Diff(want, Unmatched(all, crp, objects)); diff != "" {
		t.Error(diff)
	}
	set := Choose(all, crp, objects)
	prod, dev := Member{Name: "a", Labels: map[string]string{"env": "prod"}}, Member{Name: "b", Labels: map[string]string{"env": "dev"}}
	for _, row := range []struct {
		members []Member
		want    []string
	}{
		{[]Member{dev, prod}, nil},
		{[]Member{dev}, []string{"ResourceOverride app/fits names this placement, and no picked member matches its clusterSelector"}},
		{nil, nil},
	} {
		if diff := cmp.Diff(row.want, set.Unselected(row.members)); diff != "" {
			t.Error(diff)
		}
	}
}
