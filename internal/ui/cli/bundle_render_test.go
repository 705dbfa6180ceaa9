package cli

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// rendered returns what muster bundle --render prints for a directory with files.
func rendered(t *testing.T, files map[string]string, flags ...string) (out, notes string, err error) {
	t.Helper()
	directory := filepath.Join(t.TempDir(), "shop")
	for name, text := range files {
		file := filepath.Join(directory, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	var stdout, stderr bytes.Buffer
	command := newBundle(genericiooptions.IOStreams{Out: &stdout, ErrOut: &stderr}, newAccess())
	command.SetArgs(append([]string{directory, "--render"}, flags...))
	command.SilenceErrors, command.SilenceUsage = true, true
	err = command.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

// chartFiles are a chart with a value of each kind of source.
var chartFiles = map[string]string{
	"web/Chart.yaml":  "apiVersion: v2\nname: web\nversion: 1.0.0\n",
	"web/values.yaml": "port: 80\n",
	"web/prod.yaml":   "tier: gold\n",
	"web/templates/a.yaml": "kind: ConfigMap\nname: {{ .Release.Name }}\nnamespace: {{ .Release.Namespace }}\nport: {{ .Values.port }}\n" +
		"env: {{ .Values.env }}\ntier: {{ .Values.tier }}\nfound: {{ len (lookup \"v1\" \"Pod\" \"\" \"\") }}\n",
	"web/templates/NOTES.txt": "Thank you",
	"web/crds/d.yaml":         "kind: CustomResourceDefinition\n",
	"web/fleet.yaml": `defaultNamespace: shop
helm:
  values: {env: "${ .ClusterLabels.env }", tier: none}
  valuesFrom: [{configMapKeyRef: {name: more}}]
targetCustomizations:
- name: gold
  clusterSelector: {matchLabels: {env: prod}}
  namespace: gold
  helm: {values: {tier: "${ .ClusterName }"}}
`,
}

func TestAChartIsRenderedForACluster(t *testing.T) {
	targets := filepath.Join(t.TempDir(), "targets.yaml")
	if err := os.WriteFile(targets, []byte("targets: [{name: all, clusterSelector: {}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, notes, err := rendered(t, chartFiles, "--targets-file", targets, "--labels", "env=prod", "--cluster", "edge-1")
	want := `# Bundle shop-web for Cluster clusters/edge-1, by targets[0] (gold): release shop-web in namespace gold
# The member puts all objects into namespace gold
# Without the values of helm.valuesFrom, which are on the member
---
kind: CustomResourceDefinition

---
kind: ConfigMap
name: shop-web
namespace: gold
port: 80
env: prod
tier: edge-1
found: 0

`
	if diff := cmp.Diff(want, out); err != nil || notes != "" || diff != "" {
		t.Errorf("%v %q %s", err, notes, diff)
	}
	out, _, err = rendered(t, chartFiles, "--targets-file", targets, "--labels", "env=dev")
	if err != nil || !strings.Contains(out, "by targets[1] (all): release shop-web in namespace shop") ||
		!strings.Contains(out, "tier: none\n") {
		t.Errorf("%v %s", err, out)
	}
	if out, _, err = rendered(t, chartFiles, "--targets-file", targets, "--labels", "team=a"); err == nil || out != "" ||
		!strings.Contains(err.Error(), "bundle shop-web: helm.values.env: ") {
		t.Errorf("without the label: %v %s", err, out)
	}
}

func TestABundleThatDoesNotSelectTheClusterIsNamed(t *testing.T) {
	files := map[string]string{"db/fleet.yaml": "{}", "db/a.yaml": "apiVersion: v1\nkind: ConfigMap\n",
		"web/fleet.yaml": "overrideTargets: [{clusterSelector: {matchLabels: {env: prod}}}]", "web/b.yaml": "apiVersion: v1\nkind: ConfigMap\n"}
	out, notes, err := rendered(t, files, "--labels", "env=dev")
	want := "Bundle shop-db is not for Cluster clusters/preview: no target matches; with --labels the Cluster is in no ClusterGroup\n" +
		"Bundle shop-web is not for Cluster clusters/preview: no target matches; " +
		"near: Cluster clusters/preview has label env=dev, and targets[0] selects env=prod\n"
	if diff := cmp.Diff(want, notes); err != nil || out != "" || diff != "" {
		t.Errorf("%v %q %s", err, out, diff)
	}
}

func TestAKustomizationIsRenderedForAClusterOfItsGroup(t *testing.T) {
	bundle := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: "web"}}
	bundle.Spec.Targets = []fleet.BundleTarget{{ClusterGroup: "edge", BundleDeploymentOptions: fleet.BundleDeploymentOptions{
		Kustomize: &fleet.KustomizeOptions{Dir: "overlays/edge"}}}}
	bundle.Spec.Resources = []fleet.BundleResource{
		{Name: "base/a.yaml", Content: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"},
		{Name: "overlays/edge/kustomization.yaml", Content: "namePrefix: edge-\nresources: [../../base]\n"},
		{Name: "base/kustomization.yaml", Content: "resources: [a.yaml]\n"},
	}
	var stdout, stderr bytes.Buffer
	b := &bundler{IOStreams: genericiooptions.IOStreams{Out: &stdout, ErrOut: &stderr}, access: newAccess()}
	to := receiver{Cluster: &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: "c1"}}}
	for _, group := range []string{"core", "edge"} {
		to.groups = []*fleet.ClusterGroup{{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: group}}}
		if err := b.renderBundle(t.Context(), nil, bundle, to); err != nil {
			t.Fatal(err)
		}
	}
	if want := "Bundle web is not for Cluster ws/c1: no target matches; the Cluster is in ClusterGroup core\n"; stderr.String() != want {
		t.Errorf("notes: %q", stderr.String())
	}
	if !strings.Contains(stdout.String(), "name: edge-a") || strings.Count(stdout.String(), "# Bundle web") != 1 {
		t.Errorf("it prints %s", stdout.String())
	}
}

func TestFlagsOfAPreviewThatDoNotFit(t *testing.T) {
	for _, row := range []struct {
		flags []string
		want  string
	}{
		{nil, "--render needs a Cluster"},
		{[]string{"--diff", "--cluster", "c1"}, "exclude each other"},
		{[]string{"--render=false", "--cluster", "c1"}, "need --render"},
	} {
		_, _, err := rendered(t, map[string]string{"a.yaml": "{}"}, row.flags...)
		if err == nil || !strings.Contains(err.Error(), row.want) || ExitCode(err) != exitUsage {
			t.Errorf("%v: %v", row.flags, err)
		}
	}
}
