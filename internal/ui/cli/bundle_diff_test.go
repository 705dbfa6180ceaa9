package cli

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/repository/scan"
)

// compared returns what muster bundle --diff prints for a directory with files and a hub with
// objects.
func compared(t *testing.T, files map[string]string, objects ...client.Object) (string, bool, error) {
	t.Helper()
	directory := filepath.Join(t.TempDir(), "web")
	for name, text := range files {
		file := filepath.Join(directory, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	h := newAccess()
	hub := fake.NewClientBuilder().WithScheme(h.scheme).WithObjects(objects...).Build()
	out := &bytes.Buffer{}
	b := &bundler{IOStreams: genericiooptions.IOStreams{Out: out}, access: h}
	differs, err := b.differences(t.Context(), hub, directory)
	return out.String(), differs, err
}

// onHub returns the Bundles that a GitRepo on the hub makes of files.
func onHub(t *testing.T, repo *fleet.GitRepo, files map[string]string) (objects []client.Object) {
	t.Helper()
	tree := scan.Tree{Read: func(name string) ([]byte, error) { return []byte(files[name]), nil }}
	for name := range files {
		tree.Paths = append(tree.Paths, name)
	}
	bundles, err := scan.Bundles(t.Context(), repo, tree, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, bundle := range bundles {
		bundle.Labels["team"] = "a user's"
		bundle.Labels[fleet.LabelCommit] = "0123"
		objects = append(objects, bundle)
	}
	return objects
}

func TestABundleIsComparedWithTheOneOnTheHub(t *testing.T) {
	config := func(text string) string { return "kind: ConfigMap\ndata:\n  text: " + text + "\n" }
	repo := &fleet.GitRepo{ObjectMeta: metav1.ObjectMeta{Namespace: defaultWorkspace, Name: "web"},
		Spec: fleet.GitRepoSpec{TargetNamespace: "shop", Targets: []fleet.GitTarget{{ClusterGroup: "prod"}}}}
	hub := append(onHub(t, repo, map[string]string{"a.yaml": config("one")}), repo)
	for _, c := range []struct {
		name  string
		files map[string]string
		hub   []client.Object
		want  []string
	}{
		{"nothing differs, and the GitRepo of the hub sets the options", map[string]string{"a.yaml": config("one")}, hub, nil},
		{"a file differs", map[string]string{"a.yaml": config("two")}, hub,
			[]string{"--- hub: Bundle web", "+++ directory: Bundle web", "-      text: one", "+      text: two", "     kind: ConfigMap"}},
		{"a file is new", map[string]string{"a.yaml": config("one"), "b.yaml": "kind: Secret\n"}, hub, []string{"+  b.yaml: |"}},
		{"a Bundle is new", map[string]string{"a.yaml": config("one"), "db/fleet.yaml": "namespace: db\n", "db/b.yaml": config("b")}, hub,
			[]string{"--- /dev/null", "+++ directory: Bundle web-db", "+  namespace: shop"}},
		{"a Bundle goes", map[string]string{"db/fleet.yaml": "{}", "db/b.yaml": config("b")}, hub,
			[]string{"--- hub: Bundle web", "+++ /dev/null"}},
		{"the hub has no such GitRepo", map[string]string{"a.yaml": config("one")}, nil, []string{"+  - clusterGroup: default"}},
	} {
		out, differs, err := compared(t, c.files, c.hub...)
		if err != nil || differs != (c.want != nil) || !differs && out != "" {
			t.Errorf("%s: differs %v, %v:\n%s", c.name, differs, err, out)
		}
		for _, part := range c.want {
			if !strings.Contains(out, part) {
				t.Errorf("%s: no %q in:\n%s", c.name, part, out)
			}
		}
	}
}

func TestABrokenDirectoryIsNoDifference(t *testing.T) {
	out, differs, err := compared(t, map[string]string{"fleet.yaml": "defaultNamespaces: shop\n"})
	if err == nil || differs || out != "" || !strings.Contains(err.Error(), "did you mean defaultNamespace?") {
		t.Errorf("differs %v, %v: %s", differs, err, out)
	}
	if code := ExitCode(diffFailed{err}); code <= 1 {
		t.Errorf("the exit code is %d", code)
	}
	if code := ExitCode(errDiffers); code != 1 {
		t.Errorf("the exit code of differences is %d", code)
	}
}
