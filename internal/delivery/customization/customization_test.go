package customization

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/selection"
)

var clusterOne = &fleet.Cluster{
	ObjectMeta: metav1.ObjectMeta{
		Namespace: "clusters", Name: "c1", UID: "u1", Labels: map[string]string{"env": "dev", "a.b/c": "d", "replicas": "3"},
		Annotations: map[string]string{"zone": "z1"},
	},
	Spec: fleet.ClusterSpec{TemplateValues: &runtime.RawExtension{Raw: []byte(`{"domain":"example.org","ports":[80,443]}`)}},
}

func bundleOfSpec(t *testing.T, spec string) *fleet.Bundle {
	t.Helper()
	b := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "app"}}
	if err := yaml.UnmarshalStrict([]byte(spec), &b.Spec); err != nil {
		t.Fatal(err)
	}
	return b
}

// optionsOf returns the options of the Cluster as YAML, or the error.
func optionsOf(t *testing.T, spec string) (string, error) {
	t.Helper()
	b := bundleOfSpec(t, spec)
	m, err := selection.NewMatcher(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	options, err := Options(Present, b, m.Match(clusterOne, nil), clusterOne)
	if err != nil {
		return "", err
	}
	text, err := yaml.Marshal(options)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), nil
}

func TestOptionsOfATargetLieOverThoseOfTheBundle(t *testing.T) {
	for _, c := range []struct{ name, spec, want string }{
		{"what the target does not set stays", `
defaultNamespace: a
serviceAccount: s
targets: [{clusterName: c1, defaultNamespace: b}]`, `
defaultNamespace: b
serviceAccount: s
`},
		{"values are merged key by key, lists in them replaced", `
helm: {releaseName: r, values: {a: {b: 1, c: 2}, list: [1, 2], big: 12345678901234567890}}
targets: [{clusterName: c1, helm: {values: {a: {c: 3, d: null}, list: [3]}}}]`, `
helm:
  releaseName: r
  values:
    a:
      b: 1
      c: 3
      d: null
    big: 12345678901234567890
    list:
    - 3
`},
		{"sources of values add up", `
helm: {valuesFiles: [a.yaml], valuesFrom: [{secretKeyRef: {name: a}}]}
yaml: {overlays: [a]}
targets: [{clusterName: c1, helm: {valuesFiles: [b.yaml], valuesFrom: [{configMapKeyRef: {name: b}}]}, yaml: {overlays: [b]}}]`, `
helm:
  valuesFiles:
  - a.yaml
  - b.yaml
  valuesFrom:
  - secretKeyRef:
      name: a
  - configMapKeyRef:
      name: b
yaml:
  overlays:
  - a
  - b
`},
		{"lists in values are replaced, whatever their key", `
helm: {values: {overlays: [a], x: {valuesFrom: [a]}}}
targets: [{clusterName: c1, helm: {values: {overlays: [b], x: {valuesFrom: [b]}}}}]`, `
helm:
  values:
    overlays:
    - b
    x:
      valuesFrom:
      - b
`},
		{"a target turns off the correction of drift", `
correctDrift: {enabled: true, force: true}
targets: [{clusterName: c1, correctDrift: {enabled: false}}]`, `
correctDrift: {}
`},
		{"with AllMatches all of them count, in order", `
targetCustomizationMode: AllMatches
targets: [{clusterSelector: {}, defaultNamespace: a, serviceAccount: s}, {clusterName: c1, defaultNamespace: b}]`, `
defaultNamespace: b
serviceAccount: s
`},
	} {
		got, err := optionsOf(t, c.spec)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if diff := cmp.Diff(strings.TrimPrefix(c.want, "\n"), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestTemplatesInValues(t *testing.T) {
	const target = "\ntargets: [{clusterName: c1}]"
	for _, c := range []struct{ name, helm, want string }{
		{"labels, annotations, names and values",
			`{values: {a: "${ .ClusterLabels.env }-${ .ClusterAnnotations.zone }", b: ["${ .ClusterNamespace }/${ .ClusterName }"],
			c: "${ .ClusterValues.domain | upper }"}}`,
			"helm:\n  values:\n    a: dev-z1\n    b:\n    - clusters/c1\n    c: EXAMPLE.ORG\n"},
		{"what is no template stays", `{values: {a: "{{ .x }}", b: 1.5, c: true}}`,
			"helm:\n  values:\n    a: '{{ .x }}'\n    b: 1.5\n    c: true\n"},
		{"a label with dots", `{values: {a: '${ index .ClusterLabels "a.b/c" }'}}`, "helm:\n  values:\n    a: d\n"},
		{"templateValues become YAML", `{values: {k: {a: 1}}, templateValues: {k: "ports: ${ .ClusterValues.ports | toJson }"}}`,
			"helm:\n  values:\n    k:\n      ports:\n      - 80\n      - 443\n"},
		{"a template gives what it looks like in YAML", `{values: {num: "${ .ClusterLabels.replicas }", b: '${ eq .ClusterName "c1" }',
			l: "${ .ClusterValues.ports | toJson }", s: '${ .ClusterLabels.replicas | quote }',
			m: "a: ${ .ClusterLabels.replicas }\n", t: '${ "- 1\n- b" }', v: "v${ .ClusterLabels.replicas }", e: '${ "" }',
			x: '${ "a: b" }', big: "${ 12345678901234567 }"}}`,
			"helm:\n  values:\n    b: true\n    big: 12345678901234567\n    e: null\n    l:\n    - 80\n    - 443\n    m: |\n      a: 3\n    num: " +
				"3\n    s: \"3\"\n    t:\n    - 1\n    - b\n    v: v3\n    x: 'a: b'\n"},
		{"labels of the Cluster by their global name, at any depth",
			`{values: {a: {b: [global.fleet.clusterLabels.a.b/c]}, c: global.fleet.clusterLabels.none, d: xglobal.fleet.clusterLabels.env}}`,
			"helm:\n  values:\n    a:\n      b:\n      - d\n    c: \"\"\n    d: xglobal.fleet.clusterLabels.env\n"},
		{"all can be left alone", `{disablePreProcess: true, values: {a: "${ .Nothing }"}}`,
			"helm:\n  disablePreProcess: true\n  values:\n    a: ${ .Nothing }\n"},
	} {
		got, err := optionsOf(t, "helm: "+c.helm+target)
		if err != nil || got != c.want {
			t.Errorf("%s: got\n%s (%v), want\n%s", c.name, got, err, c.want)
		}
	}
	for _, c := range []struct {
		name, helm string
		want       []string
	}{
		{"a label that is not there", `{values: {x: {z: ["${ .ClusterLabels.nope }"]}}}`, []string{"helm.values.x.z[0]", `"nope"`}},
		{"a value that is not there", `{values: {x: "${ .ClusterValues.nope }"}}`, []string{"helm.values.x", `"nope"`}},
		{"a name that does not exist", `{values: {x: "${ .Cluster }"}}`, []string{"helm.values.x", `"Cluster"`}},
		{"a shell variable", `{values: {x: "${HOME}"}}`, []string{"helm.values.x", `"HOME"`, "disablePreProcess"}},
		{"the environment of the hub", `{values: {x: '${ env "HOME" }'}}`, []string{"helm.values.x", `"env"`}},
		{"a random value, which would never be the same", `{values: {x: '${ randAlpha 5 }'}}`, []string{"helm.values.x", `"randAlpha"`}},
		{"a key made anew each time", `{values: {x: '${ genPrivateKey "rsa" }'}}`, []string{"helm.values.x", `"genPrivateKey"`}},
		{"templateValues whose aliases make them huge", `{templateValues: {k: "a: &a ${ repeat 100000 \"x\" }\nb: [${ repeat 1000 \"*a, \" }]"}}`,
			[]string{"helm.templateValues.k", "its aliases make it larger than 16 MiB"}},
		{"templateValues that are no YAML", `{templateValues: {k: "a: b: c"}}`, []string{"helm.templateValues.k"}},
	} {
		_, err := optionsOf(t, "helm: "+c.helm+target)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v does not contain %s", c.name, err, want)
			}
		}
	}
}
