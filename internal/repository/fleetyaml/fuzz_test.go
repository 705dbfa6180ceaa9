package fleetyaml

import (
	"strings"
	"testing"
)

// FuzzParse reads a fleet.yaml of a repository. Every error names the file.
func FuzzParse(f *testing.F) {
	f.Add([]byte("namespace: web\nhelm:\n  chart: ./chart\n  values: {a: [1, 2]}\n" +
		"targetCustomizations:\n- name: dev\n  clusterSelector: {}\n"))
	f.Add([]byte("a: &a [x, x]\nb: &b [*a, *a]\nhelm: {values: {c: [*b, *b]}}\n"))
	f.Add([]byte("namespace: a\n---\nnamespace: b\n"))
	f.Add([]byte("dependsOn: [{name: x, selector: {matchLabels: {a: b}}}]\noverrideTargets: null\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := Parse("app/fleet.yaml", text)
		if err == nil && file == nil || err != nil && !strings.Contains(err.Error(), "app/fleet.yaml") {
			t.Errorf("file %v, error %v", file, err)
		}
	})
}
