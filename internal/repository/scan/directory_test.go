package scan

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestADirectoryIsReadWithoutLeavingIt(t *testing.T) {
	top := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("secret.yaml", configMap)
	write("repo/a.yaml", configMap)
	write("repo/web/b.yaml", configMap)
	write("repo/.git/config.yaml", configMap)
	link := func(to, name string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(top, "repo", name)); err != nil {
			t.Fatal(err)
		}
	}
	link("a.yaml", "c.yaml")
	link("web", "again")
	repository := filepath.Join(top, "repo")
	tree, err := Directory(repository)
	if err != nil {
		t.Fatal(err)
	}
	bundles, err := Bundles(t.Context(), repo(fleet.GitRepoSpec{}), tree, nil)
	if diff := cmp.Diff(map[string]string{"repo": "a.yaml c.yaml web/b.yaml"}, shape(bundles)); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	link("../../secret.yaml", "web/d.yaml")
	const outside = "the link web/d.yaml: ../../secret.yaml lies outside of the repository: put the file itself in the place of the link, " +
		"or exclude the link in a .fleetignore"
	fails := func(what, want string) {
		t.Helper()
		tree, err := Directory(repository)
		if err != nil {
			t.Fatal(err)
		}
		bundles, err := Bundles(t.Context(), repo(fleet.GitRepoSpec{Paths: []string{"web", "other"}}), tree, nil)
		if err == nil || !strings.Contains(err.Error(), want) || len(bundles) != 1 {
			t.Errorf("%s: %d Bundles, %v", what, len(bundles), err)
		}
	}
	write("repo/other/a.yaml", configMap)
	fails("a link out of the directory", outside)
	if err := os.Remove(filepath.Join(repository, "web", "d.yaml")); err != nil {
		t.Fatal(err)
	}
	link("gone.yaml", "web/e.yaml")
	fails("a link to no file", "the link web/e.yaml: there is no file gone.yaml: correct the link, or exclude it in a .fleetignore")
	if _, err := Directory(filepath.Join(top, "none")); err == nil {
		t.Error("a directory that does not exist was read")
	}
}
