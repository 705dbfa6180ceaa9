package bundle

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

// edit changes a ConfigMap in the target namespace by hand.
func (r *rig) edit(name, patch string) {
	r.t.Helper()
	r.check(r.kube.Patch(r.t.Context(), r.configMap(name),
		client.RawPatch("application/merge-patch+json", []byte(patch))))
}

func TestDifferencesThatAreLeftOutAreNoDrift(t *testing.T) {
	r := newRig(t)
	r.start()
	of := func(name string, operations []fleet.Operation, pointers ...string) fleet.ComparePatch {
		return fleet.ComparePatch{
			APIVersion: "v1", Kind: "ConfigMap", Name: name, Namespace: r.target, Operations: operations, JSONPointers: pointers,
		}
	}
	options := fleet.BundleDeploymentOptions{Diff: &fleet.DiffOptions{ComparePatches: []fleet.ComparePatch{
		of("removed", []fleet.Operation{{Op: "remove", Path: "/data"}}),
		of("replaced", []fleet.Operation{{Op: "replace", Path: "/data/key", Value: "any"}}),
		of("pointed", nil, "/data"),
		of("many-.*", nil, "/data"),
		of("none-.*", nil, "/data"),
	}}}
	names := []string{"removed", "replaced", "pointed", "many-1", "many-2", "counts"}
	var resources []fleet.BundleResource
	for _, name := range names {
		resources = append(resources, configMap(name, "one"))
	}
	r.deploy("web", options, resources...)
	for _, name := range names {
		r.edit(name, `{"data":{"key":"by hand"}}`)
	}
	found := r.until("web", fleet.StateModified, "configmap.v1 "+r.target+"/counts modified {", "diff.comparePatches[4] matches no object",
		`its name "none-.*"`)
	if len(found.Status.ModifiedStatus) != 1 || found.Status.ResourceCounts.Modified != 1 {
		t.Errorf("modified are %+v", found.Status.ModifiedStatus)
	}
}

func TestAnObjectThatMayBeMissingIsComparedIfItIsThere(t *testing.T) {
	r := newRig(t)
	r.start()
	options := fleet.BundleDeploymentOptions{Diff: &fleet.DiffOptions{ComparePatches: []fleet.ComparePatch{
		{APIVersion: "v1", Kind: "ConfigMap", Name: "may", Namespace: r.target, Operations: []fleet.Operation{{Op: "ignore"}}},
	}}}
	r.deploy("web", options, configMap("may", "one"), configMap("must", "one"))
	r.edit("may", `{"data":{"key":"by hand"}}`)
	r.until("web", fleet.StateModified, "configmap.v1 "+r.target+`/may modified {"data":{"key":"one"}}`)
	remove := func(name string) {
		r.check(r.kube.Delete(t.Context(), r.configMap(name)))
	}
	remove("may")
	found := r.until("web", fleet.StateReady)
	if found.Status.ResourceCounts.DesiredReady != 1 || found.Status.ResourceCounts.Missing != 0 {
		t.Errorf("counts are %+v", found.Status.ResourceCounts)
	}
	remove("must")
	r.until("web", fleet.StateModified, "configmap.v1 "+r.target+"/must missing")
}

func TestWhatIsLeftOutIsNoDriftWhereItCannotBeChanged(t *testing.T) {
	r := newRig(t)
	r.start()
	options := fleet.BundleDeploymentOptions{Diff: &fleet.DiffOptions{ComparePatches: []fleet.ComparePatch{
		{APIVersion: "v1", Kind: "ConfigMap", Name: "removed", Operations: []fleet.Operation{{Op: "remove", Path: "/data/key"}}},
		{APIVersion: "v1", Kind: "ConfigMap", Name: "pointed", JSONPointers: []string{"/data"}},
		{APIVersion: "v1", Kind: "ConfigMap", Name: "other", JSONPointers: []string{"/metadata/labels"}},
	}}}
	names := []string{"removed", "pointed", "other", "counts"}
	var resources []fleet.BundleResource
	for _, name := range names {
		resources = append(resources, configMap(name, "one"))
	}
	r.deploy("web", options, resources...)
	for _, name := range names {
		r.edit(name, `{"immutable":true,"data":{"key":"by hand"}}`)
	}
	found := r.until("web", fleet.StateModified, "configmap.v1 "+r.target+`/counts modified {"data":{"key":"one"}}`,
		"configmap.v1 "+r.target+"/other modified")
	if len(found.Status.ModifiedStatus) != 2 {
		t.Errorf("modified are %+v", found.Status.ModifiedStatus)
	}
	if ready := kube.FindCondition(found.Status.Conditions, fleet.ConditionReady); ready.Reason != "Error" {
		t.Errorf("the reason is %s", ready.Reason)
	}
}

func TestWhatLeftTheBundleAndIsHeldByAFinalizerIsExtra(t *testing.T) {
	r := newRig(t)
	r.start()
	drift := func(spec *fleet.BundleDeploymentSpec) { spec.CorrectDrift = &fleet.CorrectDrift{Enabled: true} }
	r.placeWith("web", drift, fleet.BundleDeploymentOptions{}, configMap("held", "one"), configMap("web", "one"))
	r.until("web", fleet.StateReady)
	r.edit("held", `{"metadata":{"finalizers":["example.com/held"]}}`)
	t.Cleanup(func() { // the namespace would hang
		_ = client.IgnoreNotFound(r.kube.Patch(context.Background(), r.configMap("held"),
			client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))))
	})
	r.placeWith("web", drift, fleet.BundleDeploymentOptions{}, configMap("web", "two"))
	found := r.until("web", fleet.StateModified, "configmap.v1 "+r.target+"/held extra")
	want := fleet.ModifiedStatus{Kind: "ConfigMap", APIVersion: "v1", Namespace: r.target, Name: "held", Delete: true}
	if len(found.Status.ModifiedStatus) != 1 || found.Status.ModifiedStatus[0] != want {
		t.Errorf("modified are %+v", found.Status.ModifiedStatus)
	}
	r.edit("held", `{"metadata":{"finalizers":null}}`)
	r.until("web", fleet.StateReady)
}

func TestACorrectionLeavesWhatAnotherReleaseHas(t *testing.T) {
	r := newRig(t)
	r.start()
	r.placeWith("web", func(spec *fleet.BundleDeploymentSpec) { spec.CorrectDrift = &fleet.CorrectDrift{Enabled: true} },
		fleet.BundleDeploymentOptions{}, configMap("taken", "one"), configMap("web", "one"))
	r.until("web", fleet.StateReady)
	r.edit("taken", `{"metadata":{"annotations":{"meta.helm.sh/release-name":"other"}},"data":{"key":"theirs"}}`)
	found := r.until("web", fleet.StateModified, "configmap.v1 "+r.target+"/taken not owned by us")
	if deployed := kube.FindCondition(found.Status.Conditions, fleet.ConditionDeployed); deployed.Status != corev1.ConditionTrue {
		t.Errorf("the conditions are %+v", found.Status.Conditions)
	}
	r.edit("web", `{"data":{"key":"by hand"}}`)
	r.untilData("web", "one") // the correction of the one is over
	if got, err := r.data("taken"); err != nil || got != "theirs" {
		t.Errorf("the other has %q (%v)", got, err)
	}
}

func TestConditionsThatAreLeftOutDoNotCountAgainstReadiness(t *testing.T) {
	r := newRig(t)
	r.start()
	crd := r.definitionOf("engines", "Engine")
	engine := fmt.Sprintf("apiVersion: %s/v1\nkind: Engine\nmetadata: {name: one}\nstatus: {conditions: [{type: Ready, status: 'False', "+
		"reason: Cold, message: it is cold}]}\n", r.group())
	r.place("engines", fleet.BundleDeploymentOptions{}, crd, file("b.yaml", engine))
	r.until("engines", fleet.StateNotReady, "Engine "+r.target+"/one", "it is cold")
	r.place("engines", fleet.BundleDeploymentOptions{
		IgnoreOptions: &fleet.IgnoreOptions{Conditions: []map[string]string{{"type": "Ready", "reason": "Cold"}}},
	},
		crd, file("b.yaml", engine))
	r.until("engines", fleet.StateReady)
}

func TestADriftThatWasPutRightByHandIsNone(t *testing.T) {
	r := newRig(t)
	r.start()
	r.deploy("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	for _, by := range []string{"two", "three"} { // a second change shows the second
		r.edit("web", `{"data":{"key":"`+by+`"}}`)
		r.eventually("it is modified", func() error {
			found := r.get("web")
			if patches := found.Status.ModifiedStatus; len(patches) != 1 || !strings.Contains(fmt.Sprint(patches), "one") {
				return fmt.Errorf("modified are %+v", patches)
			}
			return nil
		})
	}
	r.edit("web", `{"data":{"key":"one"}}`)
	r.until("web", fleet.StateReady)
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

// deniesUpdates has a policy refuse what the deployer changes of ConfigMaps of a name, as invalid
// and with a word that is used of fields.
func (r *rig) deniesUpdates(name string) {
	r.t.Helper()
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: r.target + "-" + name}}
	policy.Spec.MatchConstraints = &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
		ResourceNames: []string{name}, RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Update}, Rule: admissionv1.Rule{
				APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"},
			},
		},
	}}}
	invalid := metav1.StatusReasonInvalid
	policy.Spec.Validations = []admissionv1.Validation{{
		Expression: "object.metadata.namespace != '" + r.target + "' || !request.userInfo.username.startsWith('system:serviceaccount:" + r.agent +
			"')",
		Message: "what is here is immutable", Reason: &invalid,
	}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		}}
	r.create(policy)
	r.create(binding)
	r.t.Cleanup(func() {
		_ = r.kube.Delete(context.Background(), binding) // the cluster goes with the test
		_ = r.kube.Delete(context.Background(), policy)
	})
}

func TestForceReplacesOnlyWhatCannotBeChangedAndMayGo(t *testing.T) {
	r := newRig(t)
	run := r.start()
	r.placeWith("web", func(spec *fleet.BundleDeploymentSpec) {
		spec.CorrectDrift = &fleet.CorrectDrift{Enabled: true, Force: true}
	},
		fleet.BundleDeploymentOptions{}, configMap("denied", "one"), configMap("kept", "one"))
	r.until("web", fleet.StateReady)
	before := r.uids("denied", "kept")

	r.edit("kept", `{"immutable":true,"data":{"key":"by hand"},"metadata":{"annotations":{"helm.sh/resource-policy":"keep"}}}`)
	r.until("web", fleet.StateModified,
		"data cannot be changed, and the object is not replaced, because it has the annotation helm.sh/resource-policy: keep")
	r.edit("kept", `{"metadata":{"annotations":{"helm.sh/resource-policy":null}}}`)
	r.untilData("kept", "one")

	r.deniesUpdates("denied")
	r.eventually("the policy is in force", func() error {
		r.edit("denied", `{"data":{"key":"`+rand.String(5)+`"}}`)
		return hasLine(run.lines(), "what is here is immutable")
	})
	after := r.uids("denied", "kept")
	if after[0] != before[0] || after[1] == before[1] {
		t.Errorf("the UIDs were %v and are %v", before, after)
	}
}

func TestACorrectionThatFailsIsKeptInTheHistoryIfThatIsAskedFor(t *testing.T) {
	r := newRig(t)
	run := r.start()
	keep := func(spec *fleet.BundleDeploymentSpec) {
		spec.CorrectDrift = &fleet.CorrectDrift{Enabled: true, KeepFailHistory: true}
	}
	r.placeWith("web", keep, fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	r.until("web", fleet.StateReady)
	r.edit("web", `{"immutable":true,"data":{"key":"by hand"}}`)
	found := r.until("web", fleet.StateModified, "could not be corrected")
	statuses := func() string {
		var secrets corev1.SecretList
		r.check(r.kube.List(t.Context(), &secrets, client.MatchingLabels{"owner": "helm", "name": "web"}))
		var all []string
		for _, secret := range secrets.Items {
			if secret.Namespace == r.agent || secret.Namespace == r.target {
				all = append(all, secret.Labels["version"]+" "+secret.Labels["status"])
			}
		}
		slices.Sort(all)
		return strings.Join(all, ", ")
	}
	if got := statuses(); got != "1 deployed, 2 failed" || !strings.HasSuffix(found.Status.Release, "/web:1") {
		t.Errorf("the history has %s, the release is %s", got, found.Status.Release)
	}
	// It is the same release for the next process, and goes on from there.
	run.stop()
	r.start()
	r.placeWith("web", keep, fleet.BundleDeploymentOptions{}, configMap("next", "two"))
	r.untilData("next", "two")
	r.until("web", fleet.StateReady)
	if got := statuses(); !strings.HasSuffix(got, "3 deployed") {
		t.Errorf("the history has %s", got)
	}
}

func TestAnotherSyncGenerationDeploysAgain(t *testing.T) {
	r := newRig(t)
	r.start()
	r.deploy("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
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
		DefaultNamespace: r.target + "-made", NamespaceLabels: map[string]string{"team": "web"},
		NamespaceAnnotations: map[string]string{"who": "me"},
	}
	look := func(label, annotation string) {
		t.Helper()
		made := &corev1.Namespace{}
		r.check(r.kube.Get(t.Context(), client.ObjectKey{Name: options.DefaultNamespace}, made))
		if made.Labels["team"] != label || made.Labels["name"] != made.Name || made.Annotations["who"] != annotation {
			t.Errorf("its metadata is %+v", made.ObjectMeta)
		}
	}
	r.deploy("web", options, configMap("web", "one"))
	look("web", "me")
	options.NamespaceLabels = map[string]string{"team": "db"}
	r.deploy("web", options, configMap("web", "one"))
	look("db", "me")
}

func TestAChartLooksUpNoNamesIfItMayNot(t *testing.T) {
	r := newRig(t)
	r.start()
	files := []fleet.BundleResource{
		file("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
		file("templates/web.yaml",
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {key: 'at {{ getHostByName \"localhost\" }}'}\n"),
	}
	r.place("may", fleet.BundleDeploymentOptions{}, files...)
	r.place("not", fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{DisableDNS: true}}, files...)
	r.untilData("not", "at ")
	r.until("may", fleet.StateReady)
	if got, err := r.data("may"); err != nil || got == "at " {
		t.Errorf("the other has %q (%v)", got, err)
	}
}
