package deploy

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// edit changes a ConfigMap in the target namespace by hand.
func (r *rig) edit(name, patch string) {
	r.t.Helper()
	r.check(r.kube.Patch(r.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.target}},
		client.RawPatch("application/merge-patch+json", []byte(patch))))
}

func TestDifferencesThatAreLeftOutAreNoDrift(t *testing.T) {
	r := newRig(t)
	r.start()
	of := func(name string, operations []fleet.Operation, pointers ...string) fleet.ComparePatch {
		return fleet.ComparePatch{APIVersion: "v1", Kind: "ConfigMap", Name: name, Namespace: r.target, Operations: operations, JSONPointers: pointers}
	}
	options := fleet.BundleDeploymentOptions{Diff: &fleet.DiffOptions{ComparePatches: []fleet.ComparePatch{
		of("removed", []fleet.Operation{{Op: "remove", Path: "/data"}}),
		of("replaced", []fleet.Operation{{Op: "replace", Path: "/data/key", Value: "any"}}),
		of("pointed", nil, "/data"),
		of("ignored", []fleet.Operation{{Op: "ignore"}}),
	}}}
	names := []string{"removed", "replaced", "pointed", "ignored", "counts"}
	var resources []fleet.BundleResource
	for _, name := range names {
		resources = append(resources, configMap(name, "one"))
	}
	r.place("web", options, resources...)
	r.until("web", fleet.StateReady)
	for _, name := range names {
		r.edit(name, `{"data":{"key":"by hand"}}`)
	}
	found := r.until("web", fleet.StateModified, "ConfigMap "+r.target+"/counts was changed downstream")
	if len(found.Status.ModifiedStatus) != 1 || found.Status.ResourceCounts.Modified != 1 {
		t.Errorf("modified are %+v", found.Status.ModifiedStatus)
	}
}

func TestConditionsThatAreLeftOutDoNotCountAgainstReadiness(t *testing.T) {
	r := newRig(t)
	r.start()
	group := r.target + ".example.com"
	crd := fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: engines.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {plural: engines, kind: Engine}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`, group)
	engine := fmt.Sprintf("apiVersion: %s/v1\nkind: Engine\nmetadata: {name: one}\nstatus: {conditions: [{type: Ready, status: 'False', reason: Cold, message: it is cold}]}\n", group)
	r.place("engines", fleet.BundleDeploymentOptions{}, file("a.yaml", crd), file("b.yaml", engine))
	r.until("engines", fleet.StateNotReady, "Engine "+r.target+"/one", "it is cold")
	r.place("engines", fleet.BundleDeploymentOptions{IgnoreOptions: &fleet.IgnoreOptions{Conditions: []map[string]string{{"type": "Ready", "reason": "Cold"}}}},
		file("a.yaml", crd), file("b.yaml", engine))
	r.until("engines", fleet.StateReady)
}

func TestACorrectionReplacesWhatCannotBeChangedOnlyWithForce(t *testing.T) {
	r := newRig(t)
	r.start()
	drift := &fleet.CorrectDrift{Enabled: true}
	set := func(spec *fleet.BundleDeploymentSpec) { spec.CorrectDrift = drift }
	r.placeWith("web", set, fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	r.until("web", fleet.StateReady)
	r.edit("web", `{"immutable":true,"data":{"key":"by hand"}}`)
	r.until("web", fleet.StateModified, "could not be corrected", "immutable")
	drift = &fleet.CorrectDrift{Enabled: true, Force: true}
	r.placeWith("web", set, fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	r.untilData("web", "one")
	r.until("web", fleet.StateReady)
}

func TestAnotherSyncGenerationDeploysAgain(t *testing.T) {
	r := newRig(t)
	r.start()
	r.place("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	r.until("web", fleet.StateReady)
	r.edit("web", `{"data":{"key":"by hand"}}`)
	r.until("web", fleet.StateModified)
	r.place("web", fleet.BundleDeploymentOptions{ForceSyncGeneration: 1}, configMap("web", "one"))
	r.untilData("web", "one")
	found := r.until("web", fleet.StateReady)
	if !strings.HasSuffix(found.Status.Release, ":2") || found.Status.SyncGeneration == nil || *found.Status.SyncGeneration != 1 {
		t.Errorf("status is %+v", found.Status)
	}
}

func TestANamespaceIsMadeAsAskedFor(t *testing.T) {
	r := newRig(t)
	r.start()
	options := fleet.BundleDeploymentOptions{
		DefaultNamespace: r.target + "-made", NamespaceLabels: map[string]string{"team": "web"}, NamespaceAnnotations: map[string]string{"who": "me"},
	}
	look := func(label, annotation string) {
		t.Helper()
		made := &corev1.Namespace{}
		r.check(r.kube.Get(t.Context(), client.ObjectKey{Name: options.DefaultNamespace}, made))
		if made.Labels["team"] != label || made.Annotations["who"] != annotation {
			t.Errorf("its metadata is %+v", made.ObjectMeta)
		}
	}
	r.place("web", options, configMap("web", "one"))
	r.until("web", fleet.StateReady)
	look("web", "me")
	options.NamespaceLabels = map[string]string{"team": "db"}
	r.place("web", options, configMap("web", "one"))
	r.until("web", fleet.StateReady)
	look("db", "me")
}

func TestAChartLooksUpNoNamesIfItMayNot(t *testing.T) {
	r := newRig(t)
	r.start()
	files := []fleet.BundleResource{
		file("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
		file("templates/web.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {key: 'at {{ getHostByName \"localhost\" }}'}\n"),
	}
	r.place("may", fleet.BundleDeploymentOptions{}, files...)
	r.place("not", fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{DisableDNS: true}}, files...)
	r.untilData("not", "at ")
	r.until("may", fleet.StateReady)
	if got, err := r.data("may"); err != nil || got == "at " {
		t.Errorf("the other has %q (%v)", got, err)
	}
}
