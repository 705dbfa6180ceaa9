package chart

import (
	"testing"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// FuzzOverlay lays patches of a Bundle over its files. The result is bounded.
func FuzzOverlay(f *testing.F) {
	f.Add([]byte("kind: ConfigMap\ndata: {a: b}\n"), []byte("data: {a: null, c: [1]}\n"))
	f.Add([]byte("a: [1, 2]\n"),
		[]byte(`[{"op":"add","path":"/a/-","value":3},{"op":"copy","from":"/a","path":"/b"},{"op":"test","path":"/x"}]`))
	f.Add([]byte("- a\n"), []byte(`[{"op":"move","from":"/0","path":"/0/0"},{"op":"replace","path":"","value":null}]`))
	f.Fuzz(func(t *testing.T, document, patch []byte) {
		patched, err := applyPatch(document, patch)
		if err == nil && len(patched) > 64<<20 {
			t.Errorf("a patch of %d bytes makes %d", len(patch), len(patched))
		}
	})
}

// FuzzBuild makes a chart of the resources of a Bundle.
func FuzzBuild(f *testing.F) {
	f.Add("Chart.yaml", []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n"), "templates/web.yaml", []byte("kind: {{ .Values.kind }}\n"))
	f.Add("web.yaml", []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n---\n[]\n"),
		"kustomization.yaml", []byte("resources: [../..]\n"))
	f.Add("../x", []byte("a: &a [*a]\n"), "/overlays/dev/x_patch.yaml", []byte("[]"))
	f.Add("Chart.yaml", []byte("dependencies: [{name: a, repository: 'file://../..'}]\n"), "charts/a/Chart.yaml", []byte("name: null"))
	f.Fuzz(func(t *testing.T, first string, one []byte, second string, two []byte) {
		files, err := Decode([]fleet.BundleResource{{Name: first, Content: string(one)}, {Name: second, Content: string(two)}})
		if err != nil {
			return
		}
		made, _, err := Build(files, nil, "web", "1", fleet.BundleDeploymentOptions{})
		if err == nil && made == nil {
			t.Error("neither a chart nor an error")
		}
	})
}
