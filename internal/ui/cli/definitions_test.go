package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// TestAHubWhoseDefinitionsStoredAnEarlierVersionIsTakenOver: KubeFleet's hubs from before July
// 2025 have stored overrides as v1alpha1. For a stored version unknown to Muster, the error
// lists the commands before any change.
func TestAHubWhoseDefinitionsStoredAnEarlierVersionIsTakenOver(t *testing.T) {
	t.Parallel()
	hub := withPods(t, "cli-older", theirImages...)
	admin := contexts(t, hub)
	h := their{t, hub, hub.Client(t)}
	hub.InstallCRDs(t)
	h.namespaces(naming.MemberSystemNamespace)
	h.install(map[string]string{
		"Chart.yaml":         "apiVersion: v2\nname: hub-agent\nversion: 0.3.1\n",
		"templates/all.yaml": deploymentOf("hub-agent", "fleet-system", "app: hub-agent", "kubefleet/hub-agent:v0.3.1"),
	}, naming.MemberSystemNamespace, nil)
	for _, kind := range []string{
		"clusterresourceoverrides", "resourceoverrides", "clusterresourceplacementevictions", "clusterresourceplacementdisruptionbudgets",
	} {
		h.stored(kind, "v1alpha1")
	}
	h.stored("works", "v1alpha0")
	h.stored("resourceplacements", "v1alpha0")
	work := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": "Work",
		"metadata": map[string]any{"namespace": "default", "name": "old"}, "spec": map[string]any{}}}
	h.check(h.Create(t.Context(), work))
	override := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "placement.kubernetes-fleet.io/v1alpha1",
		"kind":     "ClusterResourceOverride",
		"metadata": map[string]any{"name": "old"}, "spec": map[string]any{
			"clusterResourceSelectors": []any{map[string]any{"group": "", "version": "v1", "kind": "Namespace", "name": "shop"}},
			"policy": map[string]any{"overrideRules": []any{map[string]any{"jsonPatchOverrides": []any{
				map[string]any{"op": "add", "path": "/metadata/labels/a", "value": "b"}}}}}}}}
	h.check(h.Create(t.Context(), override))

	const rewrite = "kubectl --context cli-older get works.placement.kubernetes-fleet.io -A -o json | kubectl --context cli-older replace -f -"
	for _, args := range []string{"init", "migrate --from kubefleet --dry-run", "migrate --from kubefleet"} {
		admin.refused(args, "CustomResourceDefinition works.placement.kubernetes-fleet.io lists the stored version v1alpha0", rewrite,
			"CustomResourceDefinition resourceplacements.placement.kubernetes-fleet.io lists")
	}
	h.replicas(kubeFleetHub, 1)
	_, said, _ := admin.run("migrate", "--from", "kubefleet")
	if strings.Contains(said, "overrides") || strings.Contains(said, "get resourceplacements") {
		t.Errorf("more is to be done than has to be:\n%s", said)
	}
	for line := range strings.Lines(said) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "kubectl ") {
			admin.bash(line)
		}
	}
	admin.runs("migrate --from kubefleet", "The hub is running.")
	h.check(h.Get(t.Context(), client.ObjectKeyFromObject(override), override))
	if override.GetAnnotations()["muster/author"] == "" {
		t.Error("an override of v1alpha1 has no author")
	}
}

// stored adds an earlier, served version to the stored versions of a CRD.
func (d their) stored(resource, version string) {
	d.t.Helper()
	definition := &apiextensionsv1.CustomResourceDefinition{}
	d.check(d.Get(d.t.Context(), client.ObjectKey{Name: resource + ".placement.kubernetes-fleet.io"}, definition))
	if !serves(definition, version) {
		earlier := definition.Spec.Versions[0]
		earlier.Name, earlier.Storage = version, false
		definition.Spec.Versions = append(definition.Spec.Versions, earlier)
		d.check(d.Update(d.t.Context(), definition))
	}
	definition.Status.StoredVersions = append([]string{version}, definition.Status.StoredVersions...)
	d.check(d.Status().Update(d.t.Context(), definition))
}

// bash runs a line as the user would, with a kubectl in the PATH.
func (u user) bash(line string) {
	u.t.Helper()
	programs := u.t.TempDir()
	if err := os.Symlink(testkube.Localkube(u.t), filepath.Join(programs, "kubectl")); err != nil {
		u.t.Fatal(err)
	}
	command := exec.CommandContext(u.t.Context(), "bash", "-c", "set -euo pipefail; "+line)
	command.Env = append(os.Environ(), "KUBECONFIG="+u.kubeconfig, "HOME="+programs,
		"PATH="+programs+string(os.PathListSeparator)+os.Getenv("PATH"))
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		u.t.Fatalf("%s: %v\n%s", line, err, &output)
	}
}

func TestHindranceOfADefinition(t *testing.T) {
	t.Parallel()
	definition := func(change func(*apiextensionsv1.CustomResourceDefinition)) *apiextensionsv1.CustomResourceDefinition {
		d := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "works.example.com"}}
		d.Spec.Scope = apiextensionsv1.NamespaceScoped
		d.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1"}, {Name: "v1beta1", Storage: true}}
		d.Status.StoredVersions = []string{"v1beta1"}
		change(d)
		return d
	}
	ours := definition(func(*apiextensionsv1.CustomResourceDefinition) {})
	const forget = `kubectl --context hub patch customresourcedefinition works.example.com --subresource=status --type=merge -p ` +
		`'{"status":{"storedVersions":["v1beta1"]}}'`
	for name, test := range map[string]struct {
		change  func(*apiextensionsv1.CustomResourceDefinition)
		objects bool
		want    string
	}{
		"the same":       {change: func(*apiextensionsv1.CustomResourceDefinition) {}},
		"fewer versions": {change: func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Versions = d.Spec.Versions[1:] }},
		"stored in two we have": {
			change: func(d *apiextensionsv1.CustomResourceDefinition) { d.Status.StoredVersions = []string{"v1", "v1beta1"} },
		},
		"never ready": {change: func(d *apiextensionsv1.CustomResourceDefinition) { d.Status.StoredVersions = nil }},
		"deleted": {change: func(d *apiextensionsv1.CustomResourceDefinition) {
			d.DeletionTimestamp = &metav1.Time{Time: metav1.Now().Time}
		},
			want: "CustomResourceDefinition works.example.com is being deleted: wait until it is gone. Finalizers of its objects hold it: kubectl " +
				"--context hub get works.example.com -A"},
		"another scope": {change: func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Scope = apiextensionsv1.ClusterScoped },
			want: "CustomResourceDefinition works.example.com has the scope Cluster, and Muster's has Namespaced: it belongs to other software, " +
				"and both cannot share a cluster"},
		"stored before, none is left": {change: func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Status.StoredVersions = []string{"v1alpha1", "v1beta1"}
		},
			want: "CustomResourceDefinition works.example.com lists the stored version v1alpha1, unknown to Muster: have v1beta1 written and the " +
				"other forgotten:\n  " + forget},
		"stored before, some are left": {change: func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Status.StoredVersions = []string{"v1alpha1", "v1beta1"}
		}, objects: true,
			want: "CustomResourceDefinition works.example.com lists the stored version v1alpha1, unknown to Muster: have v1beta1 written and the " +
				"other forgotten:\n  kubectl --context hub get works.example.com -A -o json | kubectl --context hub replace -f -\n  " + forget},
		"still stored": {change: func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1alpha1", Storage: true}}
			d.Status.StoredVersions = []string{"v1alpha1"}
		}, want: "CustomResourceDefinition works.example.com lists the stored version v1alpha1, unknown to Muster: upgrade what is installed " +
			"there to a release that stores v1beta1, and try again"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := hindrance(definition(test.change), ours, "hub", func() (bool, error) { return test.objects, nil })
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}
