package customization

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestAFilledTemplateHasTheTypeThatYAMLGivesIt(t *testing.T) {
	const label = "${ .ClusterLabels.x }"
	// YAML breaks the lines of a text that is longer than 80 characters.
	const long = `${ if eq .ClusterLabels.env "prod" }3${ else if eq .ClusterLabels.env "staging" }2${ else }1${ end }`
	for _, c := range []struct{ name, template, filled, want string }{
		{"a number", label, "3", `3`},
		{"a number of a long template", long, "3", `3`},
		{"a number with spaces around it", label, "\n  3 \n", `3`},
		{"a boolean", label, "false", `false`},
		{"nothing", label, " ", `null`},
		{"a list", label, "[1, a]", `[1,"a"]`},
		{"a map in lines of its own", label, "\n  a: 1\n  b: x", `{"a":1,"b":"x"}`},
		{"a quoted number", label, `"3"`, `"3"`},
		{"a block of text", label, "|-\n  a\n  b", `"a\nb"`},
		{"a template that YAML quotes", `${ default "a: b" .x }`, "3", `"3"`},
		{"a template of several lines", "a\n${ .x }", "3", `"3"`},
		{"text with spaces around it", label, " a b ", `"a b"`},
		{"text that YAML takes for a comment", label, "#fff", `"#fff"`},
		{"text of which YAML takes the end for a comment", label, "a #b", `"a #b"`},
		{"text of several lines", label, "-----BEGIN\nMII\n-----END\n", `"-----BEGIN\nMII\n-----END\n"`},
		{"text that is no YAML", label, "a: b", `"a: b"`},
		{"text that would add a key", label, "1\nb: 2", `"1\nb: 2"`},
		{"an alias", label, "*x", `"*x"`},
		{"what JSON cannot write", label, ".nan", `".nan"`},
	} {
		got, err := json.Marshal(typed(c.template, c.filled))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: got %s (%v), want %s", c.name, got, err, c.want)
		}
	}
}

func TestTheFormerRulesGiveWhatTheyGave(t *testing.T) {
	const spec = `
correctDrift: {enabled: true, force: true}
helm:
  values: {a: "${ .ClusterLabels.replicas }", l: global.fleet.clusterLabels.env, overlays: [a], x.overlays: [a], other: [a], k: {a: 1}}
  templateValues: {k: "b: 2"}
targets:
- clusterName: c1
  correctDrift: {enabled: true}
  helm: {values: {overlays: [b], x.overlays: [b], other: [b]}}
`
	for name, c := range map[string]struct {
		by   Rules
		want string
	}{
		"former": {Former, `
correctDrift:
  enabled: true
  force: true
helm:
  values:
    a: "3"
    k:
      a: 1
      b: 2
    l: global.fleet.clusterLabels.env
    other:
    - b
    overlays:
    - a
    - b
    x.overlays:
    - b
`},
		"present": {Present, `
correctDrift:
  enabled: true
helm:
  values:
    a: 3
    k:
      b: 2
    l: dev
    other:
    - b
    overlays:
    - b
    x.overlays:
    - b
`},
	} {
		options, err := Options(c.by, bundleOfSpec(t, spec), []int{0}, clusterOne)
		if err != nil {
			t.Fatal(err)
		}
		text, err := yaml.Marshal(options)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, "\n"+string(text)); diff != "" {
			t.Errorf("by the %s rules (-want +got):\n%s", name, diff)
		}
	}
}
