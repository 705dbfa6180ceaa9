package scan

import (
	"os"
	"slices"
	"strings"
	"testing"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// FuzzBundles makes Bundles of a directory with a fleet.yaml, a manifest, values and .fleetignore.
// It reads no file outside of the tree.
func FuzzBundles(f *testing.F) {
	f.Add("namespace: web\nhelm: {valuesFiles: [../values.yaml, /etc/passwd]}\n", "kind: ConfigMap\n", "a: 1\n", "*.md\n", "app")
	f.Add("dependsOn: [{name: other}]\nyaml: {overlays: [../../x]}\n", "{{", "- a", "!/**/[", "*")
	f.Add("kustomize: {dir: ../..}\nhelm: {chart: ../chart, templateValues: {a: '${ .x }'}}\n", "", "", "[", "app/..")
	f.Fuzz(func(t *testing.T, options, manifest, values, ignore, path string) {
		files := map[string]string{
			"app/fleet.yaml": options, "app/web.yaml": manifest, "app/overlays/dev/web_patch.yaml": manifest,
			"values.yaml": values, ".fleetignore": ignore,
		}
		tree := Tree{Read: func(name string) ([]byte, error) {
			text, found := files[name]
			if !found {
				if strings.HasPrefix(name, "/") || strings.HasPrefix(name, "..") {
					t.Errorf("a file outside of the tree is read: %s", name)
				}
				return nil, os.ErrNotExist
			}
			return []byte(text), nil
		}}
		for name := range files {
			tree.Paths = append(tree.Paths, name)
		}
		slices.Sort(tree.Paths)
		repo := &fleet.GitRepo{}
		repo.Name, repo.Namespace, repo.Spec.Paths = "repo", "workspace", []string{path}
		bundles, err := Bundles(t.Context(), repo, tree, nil)
		if len(bundles) == 0 && err == nil {
			t.Error("neither a Bundle nor an error")
		}
		for _, bundle := range bundles {
			if bundle.Name == "" || bundle.Namespace != repo.Namespace {
				t.Errorf("Bundle %q is in namespace %q", bundle.Name, bundle.Namespace)
			}
		}
	})
}
