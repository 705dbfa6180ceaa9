package override

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// cluster is a ClusterResourceOverride that was changed twice.
func cluster(t *testing.T, name, spec string) Override {
	t.Helper()
	o := &placement.ClusterResourceOverride{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 3}}
	if err := yaml.UnmarshalStrict([]byte(spec), &o.Spec); err != nil {
		t.Fatal(err)
	}
	return OfCluster(o)
}

// namespaced is a new ResourceOverride in the namespace app.
func namespaced(t *testing.T, name, spec string) Override {
	t.Helper()
	o := &placement.ResourceOverride{ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: name, Generation: 1}}
	if err := yaml.UnmarshalStrict([]byte(spec), &o.Spec); err != nil {
		t.Fatal(err)
	}
	return OfNamespace(o)
}

const (
	onRole      = "clusterResourceSelectors: [{group: rbac.authorization.k8s.io, version: v1, kind: ClusterRole, name: reader}]\n"
	onNamespace = "clusterResourceSelectors: [{group: '', version: v1, kind: Namespace, name: app}]\n"
	onConfig    = "resourceSelectors: [{group: '', version: v1, kind: ConfigMap, name: c}]\n"

	everywhere = "policy: {overrideRules: [{clusterSelector: {clusterSelectorTerms: []}, %}]}"
	inProd     = "policy: {overrideRules: [{clusterSelector: {clusterSelectorTerms: [{labelSelector: {matchLabels: {env: prod}}}]}, %}]}"

	role   = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: reader}, rules: [{verbs: [get, list, watch]}]}"
	app    = "{apiVersion: v1, kind: Namespace, metadata: {name: app}}"
	config = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: app, labels: {a: b}}, data: {k: v}}"
	other  = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: other}, data: {k: v}}"
)

func patches(rule, operations string) string {
	return strings.Replace(rule, "%", "jsonPatchOverrides: ["+operations+"]", 1)
}

var crp = types.NamespacedName{Name: "web"}

func TestWhatAMemberGets(t *testing.T) {
	prod := Member{Name: "m1", Labels: map[string]string{"env": "prod", "region": "eu"}}
	one := func(overrides ...Override) []Override { return overrides }
	for _, c := range []struct {
		name      string
		overrides []Override
		objects   []string
		want      []string
		problem   string
	}{
		{"a value of the member", one(cluster(t, "o", onRole+patches(inProd,
			`{op: add, path: /metadata/labels, value: {cluster: "${MEMBER-CLUSTER-NAME}", "r-${MEMBER-CLUSTER-LABEL-KEY-region}": `+
				`"x${MEMBER-CLUSTER-LABEL-KEY-region}${OTHER}"}}`))),
			[]string{role}, []string{strings.Replace(role, "name: reader", "name: reader, labels: {cluster: m1, r-eu: 'xeu${OTHER}'}", 1)}, ""},
		{"a label that the member does not have",
			one(cluster(t, "o", onRole+patches(inProd, `{op: add, path: /metadata/labels, value: {c: "${MEMBER-CLUSTER-LABEL-KEY-zone}"}}`))),
			[]string{role}, nil, "ClusterResourceOverride o: policy.overrideRules[0]: ${MEMBER-CLUSTER-LABEL-KEY-zone} uses label zone, " +
				"which member m1 does not have"},
		{"several operations in their order",
			one(cluster(t, "o", onRole+patches(everywhere, `{op: remove, path: /rules/0/verbs/2}, {op: remove, path: /rules/0/verbs/1}`))),
			[]string{role}, []string{strings.Replace(role, "[get, list, watch]", "[get]", 1)}, ""},
		{"a path that is not there", one(cluster(t, "o", onRole+patches(everywhere, `{op: add, path: /metadata/labels/new, value: x}`))),
			[]string{role}, nil, "ClusterResourceOverride o: ClusterRole reader: add /metadata/labels/new does not apply"},
		{"a Namespace with everything in it",
			one(cluster(t, "o", onNamespace+patches(everywhere, `{op: add, path: /metadata/annotations, value: {a: b}}`))),
			[]string{app, config, other}, []string{strings.Replace(app, "name: app", "name: app, annotations: {a: b}", 1),
				strings.Replace(config, "labels", "annotations: {a: b}, labels", 1), other}, ""},
		{"a resource in a namespace", one(namespaced(t, "o", onConfig+patches(everywhere, `{op: replace, path: /data/k, value: w}`))),
			[]string{config, other}, []string{strings.Replace(config, "k: v", "k: w", 1), other}, ""},
		{"that of the namespace wins", one(namespaced(t, "a", onConfig+patches(everywhere, `{op: replace, path: /data/k, value: mine}`)),
			cluster(t, "z", onNamespace+patches(everywhere, `{op: add, path: /metadata/annotations, value: {a: b}}`)),
			cluster(t, "y", "clusterResourceSelectors: [{group: '', version: v1, kind: Namespace, name: none}]\n"+
				patches(everywhere, `{op: remove, path: /nothing}`))),
			[]string{config}, []string{"{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: app, labels: {a: b}, annotations: {a: " +
				"b}}, data: {k: mine}}"}, ""},
		{
			"deleted", one(namespaced(t, "o", onConfig+strings.Replace(inProd, "%", "overrideType: Delete", 1))),
			[]string{app, config}, []string{app}, "",
		},
		{
			"a rule without a selector is for nobody", one(namespaced(t, "o", onConfig+"policy: {overrideRules: [{overrideType: Delete}]}")),
			[]string{config}, []string{config}, "",
		},
		{
			"a member that no rule selects", one(namespaced(t, "o", onConfig+
				patches(strings.Replace(inProd, "env: prod", "env: test", 1), `{op: remove, path: /data}`))), []string{config}, []string{config}, "",
		},
		{
			"another placement", one(namespaced(t, "o", onConfig+"placement: {name: web, scope: Namespaced}\n"+
				patches(everywhere, `{op: remove, path: /data}`))), []string{config}, []string{config}, "",
		},
		{
			"labels that are no texts", one(namespaced(t, "o", onConfig+patches(everywhere, `{op: add, path: /metadata/labels/n, value: 1}`))),
			[]string{config}, nil, "would not be texts",
		},
	} {
		var objects, want []*unstructured.Unstructured
		for _, text := range c.objects {
			objects = append(objects, object(t, text))
		}
		for _, text := range c.want {
			want = append(want, object(t, text))
		}
		got, problem := Choose(c.overrides, crp, objects).Resolve(prod).Apply(objects)
		if !strings.Contains(problem, c.problem) || (problem == "") != (c.problem == "") {
			t.Errorf("%s: the problem is %q, want %q", c.name, problem, c.problem)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		for i, text := range c.objects {
			if diff := cmp.Diff(object(t, text), objects[i]); diff != "" {
				t.Errorf("%s: what was given has changed:\n%s", c.name, diff)
			}
		}
	}
}

func TestAnOverrideChangesNeitherWhatAnObjectIsNorWhichOne(t *testing.T) {
	for operation, want := range map[string]string{
		`{op: replace, path: /metadata/namespace, value: kube-system}`: "of metadata only labels and annotations",
		`{op: replace, path: /metadata/name, value: x}`:                "of metadata only labels and annotations",
		`{op: replace, path: /metadata, value: {name: x}}`:             "of metadata only labels and annotations",
		`{op: add, path: /metadata/ownerReferences, value: []}`:        "of metadata only labels and annotations",
		`{op: replace, path: /kind, value: Secret}`:                    "apiVersion, kind and status",
		`{op: replace, path: /apiVersion, value: v2}`:                  "apiVersion, kind and status",
		`{op: add, path: /status, value: {}}`:                          "apiVersion, kind and status",
		`{op: replace, path: "", value: {}}`:                           "must begin with a slash",
		`{op: add, path: "/data//x", value: a}`:                        "nothing empty between slashes",
		`{op: move, path: /data/x, value: a}`:                          "op must be add, remove or replace",
		`{op: remove, path: /data/k, value: a}`:                        "remove takes no value",
		`{op: add, path: /data/k}`:                                     "add needs a value",
	} {
		objects := []*unstructured.Unstructured{object(t, config)}
		r := Choose([]Override{namespaced(t, "o", onConfig+patches(everywhere, operation))}, crp, objects).Resolve(Member{Name: "m"})
		if got, problem := r.Apply(objects); got != nil || !strings.Contains(problem, want) ||
			!strings.HasPrefix(problem, "ResourceOverride app/o: policy.overrideRules[0]: jsonPatchOverrides[0]: ") {
			t.Errorf("%s: %q, want %q", operation, problem, want)
		}
	}
}

func TestNoMessageQuotesWhatIsOverridden(t *testing.T) {
	objects := []*unstructured.Unstructured{object(t,
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: app}, data: {k: s3cret}}")}
	for _, operation := range []string{`{op: add, path: /data/k/x, value: hidden}`, `{op: remove, path: /data/none}`,
		`{op: replace, path: /data/k/0, value: hidden}`} {
		_, problem := Choose([]Override{namespaced(t, "o", onConfig+patches(everywhere, operation))}, crp,
			objects).Resolve(Member{Name: "m"}).Apply(objects)
		if problem == "" || strings.Contains(problem, "s3cret") || strings.Contains(problem, "hidden") {
			t.Errorf("%s: it says %q", operation, problem)
		}
	}
}

func TestMembersThatGetTheSameHaveOneKeyAndOverridesAreNamedWithTheirVersions(t *testing.T) {
	objects := []*unstructured.Unstructured{object(t, app), object(t, config)}
	all := []Override{
		namespaced(t, "ro", onConfig+patches(inProd, `{op: replace, path: /data/k, value: "${MEMBER-CLUSTER-LABEL-KEY-region}"}`)),
		cluster(t, "cro", onNamespace+patches(everywhere, `{op: add, path: /metadata/annotations, value: {a: b}}`)),
	}
	set := Choose(all, crp, objects)
	resolve := func(name string, labels ...string) Resolved {
		m := Member{Name: name, Labels: map[string]string{}}
		for _, label := range labels {
			key, value, _ := strings.Cut(label, "=")
			m.Labels[key] = value
		}
		return set.Resolve(m)
	}
	a, b, c, d := resolve("a", "env=prod", "region=eu"), resolve("b", "env=prod", "region=eu", "more=x"),
		resolve("c", "env=prod", "region=us"), resolve("d")
	if a.Key != b.Key || a.Key == c.Key || a.Key == d.Key {
		t.Errorf("the keys are %s, %s, %s, %s", a.Key, b.Key, c.Key, d.Key)
	}
	if diff := cmp.Diff([]string{"cro-2"}, a.Cluster); diff != "" {
		t.Errorf("overrides (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]placement.NamespacedName{{Namespace: "app", Name: "ro-0"}}, a.Namespaced); diff != "" {
		t.Errorf("overrides (-want +got):\n%s", diff)
	}
	if len(d.Namespaced) > 0 || d.NamespacedHash != "" || d.ClusterHash != a.ClusterHash || a.NamespacedHash == "" {
		t.Errorf("hashes are %q %q, %q %q", a.ClusterHash, a.NamespacedHash, d.ClusterHash, d.NamespacedHash)
	}
	if none := Choose(all, crp, []*unstructured.Unstructured{object(t, role)}); none != nil {
		t.Errorf("%v are for a placement of which they select nothing", none)
	}
}
