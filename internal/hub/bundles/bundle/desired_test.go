package bundle

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/naming"
)

var clusterOne = &fleet.Cluster{
	ObjectMeta: metav1.ObjectMeta{
		Namespace: "clusters", Name: "c1", UID: "u1", Labels: map[string]string{"env": "dev", "a.b/c": "d", "replicas": "3"},
		Annotations: map[string]string{"zone": "z1"},
	},
	Spec:   fleet.ClusterSpec{TemplateValues: &runtime.RawExtension{Raw: []byte(`{"domain":"example.org","ports":[80,443]}`)}},
	Status: fleet.ClusterStatus{Namespace: "cluster-clusters-c1"},
}

// optionsOf returns the options of the Cluster as YAML, or the error.
func optionsOf(t *testing.T, spec string) (string, error) {
	t.Helper()
	b := bundleOfSpec(t, spec)
	m, err := newMatcher(b)
	if err != nil {
		t.Fatal(err)
	}
	options, err := optionsFor(presentRules, b, m.match(clusterOne, nil), clusterOne)
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
			`{values: {a: "${ .ClusterLabels.env }-${ .ClusterAnnotations.zone }", b: ["${ .ClusterNamespace }/${ .ClusterName }"], c: "${ .ClusterValues.domain | upper }"}}`,
			"helm:\n  values:\n    a: dev-z1\n    b:\n    - clusters/c1\n    c: EXAMPLE.ORG\n"},
		{"what is no template stays", `{values: {a: "{{ .x }}", b: 1.5, c: true}}`,
			"helm:\n  values:\n    a: '{{ .x }}'\n    b: 1.5\n    c: true\n"},
		{"a label with dots", `{values: {a: '${ index .ClusterLabels "a.b/c" }'}}`, "helm:\n  values:\n    a: d\n"},
		{"templateValues become YAML", `{values: {k: {a: 1}}, templateValues: {k: "ports: ${ .ClusterValues.ports | toJson }"}}`,
			"helm:\n  values:\n    k:\n      ports:\n      - 80\n      - 443\n"},
		{"a template gives what it looks like in YAML", `{values: {num: "${ .ClusterLabels.replicas }", b: '${ eq .ClusterName "c1" }', l: "${ .ClusterValues.ports | toJson }", s: '${ .ClusterLabels.replicas | quote }',
			m: "a: ${ .ClusterLabels.replicas }\n", t: '${ "- 1\n- b" }', v: "v${ .ClusterLabels.replicas }", e: '${ "" }', x: '${ "a: b" }', big: "${ 12345678901234567 }"}}`,
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

func TestADeploymentCarriesLabelsAndHidesValues(t *testing.T) {
	b := bundleOfSpec(t,
		`{paused: false, dependsOn: [{name: first}], correctDrift: {enabled: true}, helm: {chart: c, values: {a: 1}}, targets: [{clusterName: c1}]}`)
	b.Labels = map[string]string{"team": "x", fleet.LabelCluster: "forged", fleet.LabelCreatedByDisplayName: "Ann"}
	options, err := optionsFor(presentRules, b, []int{0}, clusterOne)
	if err != nil {
		t.Fatal(err)
	}
	got := desiredDeployment(b, clusterOne, "s-1:2")
	secret := withOptions(got, options)
	want := &fleet.BundleDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: naming.MemberNamespace("clusters", "c1"), Name: "app", Labels: map[string]string{
			"team": "x", fleet.LabelManaged: "true", fleet.LabelBundleName: "app", fleet.LabelBundleNamespace: "clusters", fleet.LabelCluster: "c1",
			fleet.LabelClusterNamespace: "clusters", fleet.LabelContentName: "s-1",
		}},
		Spec: fleet.BundleDeploymentSpec{
			DeploymentID: "s-1:2", StagedDeploymentID: "s-1:2", DependsOn: []fleet.BundleRef{{Name: "first"}},
			CorrectDrift:  &fleet.CorrectDrift{Enabled: true},
			Options:       fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{Chart: "c"}, CorrectDrift: &fleet.CorrectDrift{Enabled: true}},
			StagedOptions: fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{Chart: "c"}, CorrectDrift: &fleet.CorrectDrift{Enabled: true}},
			ValuesHash:    "feb23a7440b7a5c0deac5b205d4ec700264d82edc75366e6c353bb9a14861a17", // of {"a":1}, twice
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if string(secret.Data["values"]) != `{"a":1}` || string(secret.Data["stagedValues"]) != `{"a":1}` {
		t.Errorf("Secret has %s", secret.Data)
	}
}

func TestADeploymentWithoutOptionsForHelmSaysSoWithAnEmptyObject(t *testing.T) {
	d := &fleet.BundleDeployment{}
	withOptions(d, fleet.BundleDeploymentOptions{})
	text, err := json.Marshal(d.Spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"options":{"helm":{}`, `"stagedOptions":{"helm":{}`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the spec is %s, without %s", text, want)
		}
	}
}

// TestWhatUnpacksToMuchTakesNoMemory packs what a parser would make a tree of a
// hundred times its size of.
func TestWhatUnpacksToMuchTakesNoMemory(t *testing.T) {
	packed := func(pattern string, size int) fleet.BundleResource {
		small, err := delivery.Gzip(bytes.Repeat([]byte(pattern), size/len(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		return fleet.BundleResource{
			Name: fmt.Sprintf("%d.yaml", size), Encoding: fleet.EncodingGzip, Content: base64.StdEncoding.EncodeToString(small),
		}
	}
	for name, row := range map[string]struct {
		resources []fleet.BundleResource
		want      string
	}{
		"one document that is large":     {[]fleet.BundleResource{packed("a: b c d e f g\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n", 1<<20)}, ""},
		"one document that is one text":  {[]fleet.BundleResource{packed("# a, b, {c: [d]}\n", maxUnpacked)}, ""},
		"one document of many lists":     {[]fleet.BundleResource{packed("-\n", maxUnpacked)}, "line 1: it has up to 16777219 values"},
		"keys without values":            {[]fleet.BundleResource{packed("?\n", 1<<20)}, "line 1: it has up to 1572867 values"},
		"as many values as there may be": {[]fleet.BundleResource{packed("-\n", 190_000)}, ""},
		"comments in lists":              {[]fleet.BundleResource{packed("- #\n", 390_000)}, ""},
		"many documents":                 {[]fleet.BundleResource{packed("---\n- a\n- b\n", 256<<10)}, ""},
		"a file that is too large":       {[]fleet.BundleResource{packed("-\n", 4*maxUnpacked)}, "may unpack to 16 MiB together"},
		"files that are too large together": {
			[]fleet.BundleResource{packed("-\n", maxUnpacked-10), packed("-\n", 20)},
			"20.yaml: the resources of a Bundle may unpack to 16 MiB together",
		},
		"a large document that is no YAML":    {[]fleet.BundleResource{packed("a: [\n", 128<<10)}, "invalid YAML: line"},
		"a file that is too large of one row": {[]fleet.BundleResource{packed("[", 2*maxUnpacked)}, "may unpack to 16 MiB together"},
	} {
		var before, after goruntime.MemStats
		goruntime.GC()
		goruntime.ReadMemStats(&before)
		err := checkResources(row.resources, unnoted)
		goruntime.ReadMemStats(&after)
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", name, err, row.want)
		}
		if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; allocated > 150 { // of which at most 60 MiB are in use at once
			t.Errorf("%s: %d MiB were allocated", name, allocated)
		}
	}
}

func TestCheckResources(t *testing.T) {
	for _, c := range []struct {
		name      string
		resources []fleet.BundleResource
		want      string
	}{
		{"good ones", []fleet.BundleResource{{Name: "a.yaml", Content: "a: 1\n---\nb: 2\n"}, {Name: "notes.txt", Content: "a: b: c"},
			{Content: "kind: X"}}, ""},
		{"templates of a chart are not YAML yet",
			[]fleet.BundleResource{{Name: "web/Chart.yaml", Content: "name: web"}, {Name: "web/templates/sub/x.yaml", Content: "{{ if }}"}}, ""},
		{"but other files are", []fleet.BundleResource{{Name: "templates/x.yaml", Content: "{{ if"}}, "templates/x.yaml: invalid YAML: line 1"},
		{"a line that is out of place", []fleet.BundleResource{{Name: "x.yaml", Content: "a: 1\nb:\n  - c\n d: 2\ne: 3\n"}},
			"x.yaml: invalid YAML: line 4: "},
		{"a tab", []fleet.BundleResource{{Name: "x.yaml", Content: "a:\n  b: 1\n\tc: 2\n"}}, "x.yaml: invalid YAML: line 3: "},
		{"a quote that is never closed", []fleet.BundleResource{{Name: "x.yaml", Content: "a: 1\nb: \"x\nc: 2\nd: 3\n"}},
			"x.yaml: invalid YAML: line 2: "},
		{"in a later document", []fleet.BundleResource{{Name: "x.yaml", Content: "a: 1\n---\nb: 2\nc\n"}}, "x.yaml: invalid YAML: line 4: "},
		{"in a document after a directive", []fleet.BundleResource{{Name: "x.yaml", Content: "a: 1\n...\n%YAML 1.1\n---\nb: 2\nc\n"}},
			"x.yaml: invalid YAML: line 6: "},
		{"with comments and empty documents",
			[]fleet.BundleResource{{Name: "x.yaml", Content: "# one\n---\n---\n# two\n\n--- # three\na: 1\n---\n"}}, ""},
		{"a text that looks like the begin of a document", []fleet.BundleResource{{Name: "x.yaml", Content: "a: |\n  ---\n  b: [\n"}}, ""},
		{"an unknown encoding", []fleet.BundleResource{{Name: "x.yaml", Encoding: "zstd"}}, `x.yaml: its encoding "zstd"`},
		{"one name twice", []fleet.BundleResource{{Name: "x.yaml"}, {Name: "x.yaml"}}, "another resource x.yaml"},
	} {
		err := checkResources(c.resources, unnoted)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// unnoted is begin where no journal is.
func unnoted() func() { return func() {} }
