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

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/delivery/customization"
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

func TestADeploymentCarriesLabelsAndHidesValues(t *testing.T) {
	b := bundleOfSpec(t,
		`{paused: false, dependsOn: [{name: first}], correctDrift: {enabled: true}, helm: {chart: c, values: {a: 1}}, targets: [{clusterName: `+
			`c1}]}`)
	b.Labels = map[string]string{"team": "x", fleet.LabelCluster: "forged", fleet.LabelCreatedByDisplayName: "Ann"}
	options, err := customization.Options(customization.Present, b, []int{0}, clusterOne)
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

func TestADeploymentByTheFormerRulesStaysUntilTheyGiveAnother(t *testing.T) {
	bundle := bundleOfSpec(t,
		`{correctDrift: {enabled: true}, helm: {values: {a: "${ .ClusterLabels.replicas }"}}, targets: [{clusterName: c1}]}`)
	m := &computed{}
	m.begin(bundle, packed{name: "s-1"})
	present := m.compute(customization.Present, bundle, clusterOne, []int{0})
	former := m.compute(customization.Former, bundle, clusterOne, []int{0})
	if present.id == former.id || present.problem != nil || former.problem != nil {
		t.Fatalf("present %+v, former %+v", present, former)
	}
	relabeled := clusterOne.DeepCopy()
	relabeled.Labels["replicas"] = "4"
	for name, c := range map[string]struct {
		id      string
		cluster *fleet.Cluster
		want    bool
	}{
		"none":                             {"", clusterOne, false},
		"one by the present rules":         {present.id, clusterOne, false},
		"one by the former rules":          {former.id, clusterOne, true},
		"one of another Bundle":            {former.id + "0", clusterOne, false},
		"one of the Cluster as it was":     {former.id, relabeled, false},
		"one by the former rules, as seen": {former.id, clusterOne, true},
	} {
		m.outcomeFor(bundle, c.cluster, []int{0})
		d := &fleet.BundleDeployment{Spec: fleet.BundleDeploymentSpec{DeploymentID: c.id}}
		if got, is := m.formerOutcome(d, bundle, c.cluster, []int{0}); is != c.want ||
			is && (got.id != former.id || got.digest != former.digest) {
			t.Errorf("with %s: %t, %+v", name, is, got)
		}
	}
}
