package override

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/author"
	"github.com/muster-fleet/muster/internal/hub/placement/authorization"
)

// parsed returns objects that are written as YAML.
func parsed(t *testing.T, texts ...string) (objects []*unstructured.Unstructured) {
	t.Helper()
	for _, text := range texts {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	return objects
}

// resourceOf is a hub that serves all kinds but Widgets.
func resourceOf(kind schema.GroupVersionKind) (schema.GroupVersionResource, error) {
	if kind.Kind == "Widget" {
		return authorization.UnknownResource(kind), nil
	}
	return kind.GroupVersion().WithResource(map[string]string{
		"ConfigMap": "configmaps", "Secret": "secrets", "ResourceQuota": "resourcequotas", "Namespace": "namespaces", "Role": "roles",
		"ClusterRole": "clusterroles",
		"RoleBinding": "rolebindings", "ClusterRoleBinding": "clusterrolebindings",
	}[kind.Kind]), nil
}

func TestAnOverrideTakesTheRightsOfItsChangesOnTheHub(t *testing.T) {
	const rbac = "apiVersion: rbac.authorization.k8s.io/v1\n"
	objects := parsed(t,
		"{apiVersion: v1, kind: Namespace, metadata: {name: shop}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: shop}}",
		"{apiVersion: v1, kind: ResourceQuota, metadata: {name: limits, namespace: shop}}",
		"{apiVersion: example.com/v1, kind: Widget, metadata: {name: w, namespace: shop}}",
		rbac+"kind: Role\nmetadata: {name: team, namespace: shop}",
		rbac+"kind: RoleBinding\nmetadata: {name: team, namespace: shop}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: team}",
		rbac+"kind: RoleBinding\nmetadata: {name: viewers, namespace: shop}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, "+
			"name: view}",
		rbac+"kind: RoleBinding\nmetadata: {name: strange, namespace: shop}",
		rbac+"kind: ClusterRoleBinding\nmetadata: {name: all}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}",
	)
	const patch, remove = "{jsonPatchOverrides: [{op: add, path: /data/a, value: x}]}", "{overrideType: Delete}"
	const subjects, role = "{jsonPatchOverrides: [{op: add, path: /subjects/-, value: {}}]}",
		"{jsonPatchOverrides: [{op: replace, path: /roleRef/name, value: cluster-admin}]}"
	named := func(kind, name string) string { return "{version: v1, kind: " + kind + ", name: " + name + "}" }
	ofRBAC := func(kind, name string) string {
		return "{group: rbac.authorization.k8s.io, version: v1, kind: " + kind + ", name: " + name + "}"
	}
	in := " in namespace shop"
	for _, c := range []struct {
		name, namespace, selector, rules string
		want                             []string
	}{
		{"a patch", "shop", named("ConfigMap", "a"), patch, []string{"update configmaps a" + in}},
		{"a deletion", "shop", named("ResourceQuota", "limits"), remove, []string{"delete resourcequotas limits" + in}},
		{"both", "shop", named("ConfigMap", "a"), patch + ", " + remove, []string{"update configmaps a" + in, "delete configmaps a" + in}},
		{"nothing that is placed", "shop", named("ConfigMap", "none"), patch, nil},
		{
			"a kind that the hub does not serve", "shop", "{group: example.com, version: v1, kind: Widget, name: w}", patch,
			[]string{"update *.example.com w" + in},
		},
		{
			"a Role", "shop", ofRBAC("Role", "team"), patch,
			[]string{"update roles.rbac.authorization.k8s.io team" + in, "escalate roles.rbac.authorization.k8s.io team" + in},
		},
		{"a Role that goes", "shop", ofRBAC("Role", "team"), remove, []string{"delete roles.rbac.authorization.k8s.io team" + in}},
		{
			"the subjects of a Role", "shop", ofRBAC("RoleBinding", "team"), subjects,
			[]string{"update rolebindings.rbac.authorization.k8s.io team" + in, "bind roles.rbac.authorization.k8s.io team" + in},
		},
		{
			"those of a ClusterRole", "shop", ofRBAC("RoleBinding", "viewers"), subjects,
			[]string{"update rolebindings.rbac.authorization.k8s.io viewers" + in, "bind clusterroles.rbac.authorization.k8s.io view" + in},
		},
		{
			"another role", "shop", ofRBAC("RoleBinding", "viewers"), role,
			[]string{"update rolebindings.rbac.authorization.k8s.io viewers" + in, "bind clusterroles.rbac.authorization.k8s.io" + in,
				"bind roles.rbac.authorization.k8s.io" + in},
		},
		{
			"a role that cannot be read", "shop", ofRBAC("RoleBinding", "strange"), subjects,
			[]string{"update rolebindings.rbac.authorization.k8s.io strange" + in, "bind clusterroles.rbac.authorization.k8s.io" + in,
				"bind roles.rbac.authorization.k8s.io" + in},
		},
		{
			"a ClusterRoleBinding", "", ofRBAC("ClusterRoleBinding", "all"), subjects,
			[]string{"update clusterrolebindings.rbac.authorization.k8s.io all", "bind clusterroles.rbac.authorization.k8s.io view"},
		},
		{"a Namespace with everything in it", "", named("Namespace", "shop"), remove, []string{
			"delete namespaces shop", "delete configmaps" + in, "delete resourcequotas" + in, "delete *.example.com" + in,
			"delete roles.rbac.authorization.k8s.io" + in, "delete rolebindings.rbac.authorization.k8s.io" + in,
		}},
	} {
		o := Override{NamespacedName: types.NamespacedName{Namespace: c.namespace, Name: "o"}, selectors: make([]placement.ResourceSelector, 1)}
		if err := errors.Join(yaml.UnmarshalStrict([]byte(c.selector), &o.selectors[0]),
			yaml.UnmarshalStrict([]byte("overrideRules: ["+c.rules+"]"), &o.policy)); err != nil {
			t.Fatal(err)
		}
		rights, err := o.Rights(objects, resourceOf)
		var got []string
		for _, right := range rights {
			got = append(got, right.String())
		}
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v, rights (-want +got):\n%s", c.name, err, diff)
		}
	}
}

func TestAnOverrideThatCannotBeAppliedTakesTheRightToUpdate(t *testing.T) {
	for name, policy := range map[string]*placement.OverridePolicy{
		"no policy": nil, "no rules": {}, "no patches": {OverrideRules: []placement.OverrideRule{{}}},
	} {
		if patches, deletes, _ := (Override{policy: policy}).changes(); !patches || deletes {
			t.Errorf("%s: it patches %t, deletes %t", name, patches, deletes)
		}
	}
}

func TestAnIgnoredOverrideChangesNothingAndAHeldOneBlocksItsMembers(t *testing.T) {
	objects := parsed(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}, data: {a: '1'}}")
	of := func(name, selector string) Override {
		ro := &placement.ResourceOverride{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Annotations: map[string]string{author.AnnotationName: "eve"}},
		}
		ro.Spec.ResourceSelectors = []placement.ResourceSelector{{Version: "v1", Kind: "ConfigMap", Name: "a"}}
		if err := yaml.UnmarshalStrict([]byte("overrideRules: [{clusterSelector: {clusterSelectorTerms: ["+selector+"]}, overrideType: Delete}]"),
			&ro.Spec.Policy); err != nil {
			t.Fatal(err)
		}
		return OfNamespace(ro)
	}
	all := Choose([]Override{of("refused", ""), of("unknown", "{labelSelector: {matchLabels: {env: prod}}}"),
		of("fine", "{labelSelector: {matchLabels: {env: dev}}}")}, types.NamespacedName{Name: "crp"}, objects)
	set, err := all.Review(func(o Override) (Standing, error) {
		if !o.HasAuthor || o.Author.Name != "eve" {
			t.Errorf("%s is of %+v", o, o.Author)
		}
		return map[string]Standing{"refused": {Ignored: true}, "unknown": {Reason: "R", Message: "it is held"}}[o.Name], nil
	})
	if err != nil || len(set) != 2 {
		t.Fatalf("%d overrides count, %v", len(set), err)
	}
	for env, want := range map[string]Resolved{
		"test": {}, "prod": {Reason: "R", Problem: "it is held", IDs: []string{set[1].ID()}}, "dev": {IDs: []string{set[0].ID()}},
	} {
		got := set.Resolve(Member{Name: "m", Labels: map[string]string{"env": env}})
		if got.Reason != want.Reason || got.Problem != want.Problem || !slices.Equal(got.IDs, want.IDs) {
			t.Errorf("on %s: %+v", env, got)
		}
		if _, problem := got.Apply(objects); problem != want.Problem {
			t.Errorf("on %s it is applied with problem %q", env, problem)
		}
	}
	if of("a", "").ID() == of("b", "").ID() {
		t.Error("two overrides have one ID")
	}
}
