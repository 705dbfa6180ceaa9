package deploy

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/deploy/release"
)

// untilData waits until the key of a ConfigMap in the target namespace has a value.
func (r *rig) untilData(name, want string) {
	r.t.Helper()
	r.eventually(fmt.Sprintf("ConfigMap %s has %q", name, want), func() error {
		if got, err := r.data(name); err != nil || got != want {
			return fmt.Errorf("it has %q (%w)", got, err)
		}
		return nil
	})
}

func (r *rig) untilGone(object client.Object) {
	r.t.Helper()
	r.eventually(fmt.Sprintf("%T %s is gone", object, object.GetName()), func() error {
		if err := r.kube.Get(context.Background(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading it: %v", err)
		}
		return nil
	})
}

// revisions are those of a release that are kept.
func (r *rig) revisions(release string) int {
	r.t.Helper()
	histories := &corev1.SecretList{}
	r.check(r.kube.List(r.t.Context(), histories, client.InNamespace(r.agent), client.MatchingLabels{"owner": "helm", "name": release}))
	return len(histories.Items)
}

// never is a Deployment whose pods never start.
const never = `apiVersion: apps/v1
kind: Deployment
metadata: {name: never}
spec:
  selector: {matchLabels: {app: never}}
  template:
    metadata: {labels: {app: never}}
    spec: {containers: [{name: a, image: nowhere.example.com/a}]}
`

func TestAsManyRevisionsAreKeptAsAreAskedFor(t *testing.T) {
	r := newRig(t)
	r.start()
	for name, kept := range map[string]int{"usual": 0, "four": 4} {
		for i := range 6 {
			r.place(name, fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{MaxHistory: kept}}, configMap(name, fmt.Sprintf("v%d", i)))
			r.untilData(name, fmt.Sprintf("v%d", i))
			r.until(name, fleet.StateReady)
		}
	}
	if usual, four := r.revisions("usual"), r.revisions("four"); usual != 2 || four != 4 {
		t.Errorf("there are %d and %d revisions, want 2 and 4", usual, four)
	}
}

func TestAnAtomicUpgradeThatFailsIsRolledBackAndSaysSo(t *testing.T) {
	r := newRig(t)
	r.start()
	atomic := fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{Atomic: true, TimeoutSeconds: 3}}
	r.place("web", atomic, configMap("web", "one"))
	r.until("web", fleet.StateReady)
	r.place("web", atomic, configMap("web", "two"), file("never.yaml", never))
	found := r.until("web", fleet.StateErrApplied, "rolled back", "never")
	t.Logf("it says %q", readyMessage(found.Status.Conditions))
	r.untilData("web", "one")
	r.place("web", atomic, configMap("web", "three"))
	r.untilData("web", "three")
	r.until("web", fleet.StateReady)
}

func TestForceReplacesWhatOthersAdded(t *testing.T) {
	r := newRig(t)
	r.start()
	add := func() {
		r.check(r.kube.Patch(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: r.target}},
			client.RawPatch("application/merge-patch+json", []byte(`{"data":{"extra":"by hand"}}`))))
	}
	extra := func() string {
		found := &corev1.ConfigMap{}
		r.check(r.kube.Get(t.Context(), client.ObjectKey{Namespace: r.target, Name: "web"}, found))
		return found.Data["extra"]
	}
	r.place("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	r.until("web", fleet.StateReady)
	add()
	r.place("web", fleet.BundleDeploymentOptions{}, configMap("web", "two"))
	r.untilData("web", "two")
	if extra() == "" {
		t.Error("what is another's was removed without force")
	}
	r.until("web", fleet.StateReady)
	r.place("web", fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{Force: true}}, configMap("web", "three"))
	r.untilData("web", "three")
	if got := extra(); got != "" {
		t.Errorf("the object was not replaced: it has %q", got)
	}
	r.until("web", fleet.StateReady)
	r.place("web", fleet.BundleDeploymentOptions{}, configMap("web", "four"))
	r.untilData("web", "four")
	r.until("web", fleet.StateReady)
}

func TestKindsStayUnlessTheyAreToGoWithTheirBundle(t *testing.T) {
	r := newRig(t)
	r.start()
	definitions := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	crd := func(plural string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(definitions)
		o.SetName(plural + "." + r.target + ".example.com")
		return o
	}
	manifest := func(plural string) fleet.BundleResource {
		return file("crd.yaml", fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.%[2]s.example.com}
spec:
  group: %[2]s.example.com
  scope: Namespaced
  names: {plural: %[1]s, kind: K%[1]s}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`, plural, r.target))
	}
	r.place("stays", fleet.BundleDeploymentOptions{}, manifest("stays"), configMap("stays", "one"))
	r.place("goes", fleet.BundleDeploymentOptions{DeleteCRDResources: true}, manifest("goes"), configMap("goes", "one"))
	for _, name := range []string{"stays", "goes"} {
		r.until(name, fleet.StateReady)
		r.check(r.kube.Delete(t.Context(), r.get(name)))
		r.untilGone(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.target}})
	}
	r.untilGone(crd("goes"))
	if stays := crd("stays"); r.kube.Get(t.Context(), client.ObjectKeyFromObject(stays), stays) != nil || stays.GetDeletionTimestamp() != nil {
		t.Errorf("it is %v", stays.Object)
	}
	// It is taken up by the Bundle when that comes back.
	r.place("stays", fleet.BundleDeploymentOptions{}, manifest("stays"), configMap("stays", "two"))
	r.until("stays", fleet.StateReady)
}

func TestTheNamespaceGoesWithTheBundleIfAskedFor(t *testing.T) {
	r := newRig(t)
	r.start()
	for name, with := range map[string]bool{"with": true, "without": false} {
		r.place(name, fleet.BundleDeploymentOptions{DefaultNamespace: r.target + "-" + name, DeleteNamespace: with}, configMap("web", "one"))
		r.until(name, fleet.StateReady)
		r.check(r.kube.Delete(t.Context(), r.get(name)))
	}
	r.untilGone(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: r.target + "-without"}})
	r.untilGone(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.target + "-with"}})
	kept := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.target + "-without"}}
	if err := r.kube.Get(t.Context(), client.ObjectKeyFromObject(kept), kept); err != nil || kept.DeletionTimestamp != nil {
		t.Errorf("the other is %v (%v)", kept.DeletionTimestamp, err)
	}
}

func TestADeploymentWaitsForItsJobsIfAskedTo(t *testing.T) {
	r := newRig(t)
	r.start()
	job := file("job.yaml", `apiVersion: batch/v1
kind: Job
metadata: {name: migrate}
spec:
  backoffLimit: 0
  template:
    spec: {restartPolicy: Never, containers: [{name: a, image: nowhere.example.com/a}]}
`)
	r.place("web", fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{WaitForJobs: true, TimeoutSeconds: 60}}, job, configMap("web", "one"))
	r.until("web", fleet.StateWaitApplied, "Helm waits for its hooks or objects")
	r.eventually("the pod of the Job is there and ends", func() error {
		pods := &corev1.PodList{}
		r.check(r.kube.List(t.Context(), pods, client.InNamespace(r.target), client.MatchingLabels{"job-name": "migrate"}))
		if len(pods.Items) == 0 {
			return errors.New("there is none")
		}
		return r.kube.Status().Patch(t.Context(), &pods.Items[0], client.RawPatch("application/merge-patch+json", []byte(`{"status":{"phase":"Succeeded"}}`)))
	})
	r.until("web", fleet.StateReady)
}

func TestAClusterThatWasAwayGetsOnlyTheLastChange(t *testing.T) {
	r := newRig(t)
	run := r.start()
	keep := fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{MaxHistory: 10}}
	r.place("web", keep, configMap("web", "one"))
	r.until("web", fleet.StateReady)
	run.stop()
	r.place("web", keep, configMap("web", "two"))
	r.place("web", keep, configMap("web", "three"))
	r.start()
	r.untilData("web", "three")
	r.until("web", fleet.StateReady)
	if got := r.revisions("web"); got != 2 {
		t.Errorf("there are %d revisions", got)
	}
}

// noise does not compress.
func noise(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	source := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // noise
	var text strings.Builder
	for range n {
		text.WriteByte(letters[source.IntN(len(letters))])
	}
	return text.String()
}

func TestWhatIsTooLargeForAReleaseSaysSo(t *testing.T) {
	r := newRig(t)
	r.start()
	var resources []fleet.BundleResource
	for i := range 3 {
		resources = append(resources, configMap(fmt.Sprintf("plain-%d", i), strings.Repeat("0123456789abcdef", 32<<10)))
	}
	r.place("large", fleet.BundleDeploymentOptions{}, resources...)
	r.until("large", fleet.StateReady)

	resources = nil
	for i := range 3 {
		resources = append(resources, configMap(fmt.Sprintf("noise-%d", i), noise(450<<10)))
	}
	r.place("noise", fleet.BundleDeploymentOptions{}, resources...)
	found := r.until("noise", fleet.StateErrApplied, "two Bundles")
	t.Logf("it says %q", readyMessage(found.Status.Conditions))
	if len(readyMessage(found.Status.Conditions)) > 1000 {
		t.Error("it says too much")
	}
	for i := range 3 {
		if _, err := r.data(fmt.Sprintf("noise-%d", i)); !apierrors.IsNotFound(err) {
			t.Errorf("part of it is deployed: %v", err)
		}
	}
}

func TestFiveThousandObjectsAreDeployedAndRemoved(t *testing.T) {
	r := newRig(t)
	r.start()
	var many strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&many, "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: many-%d\n", i)
	}
	begun := time.Now()
	r.place("many", fleet.BundleDeploymentOptions{}, file("many.yaml", many.String()))
	r.slowly("they are ready", func() bool { return r.get("many").Status.ResourceCounts.Ready == 5000 })
	t.Logf("ready after %s", time.Since(begun))
	begun = time.Now()
	r.check(r.kube.Delete(t.Context(), r.get("many")))
	r.slowly("they are gone", func() bool {
		left := &corev1.ConfigMapList{}
		r.check(r.kube.List(t.Context(), left, client.InNamespace(r.target), client.HasLabels{release.LabelSet}, client.Limit(1)))
		return len(left.Items) == 0
	})
	t.Logf("removed after %s", time.Since(begun))
}

// slowly is eventually for what may take minutes.
func (r *rig) slowly(what string, done func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(15 * time.Minute); !done(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("%s: not so after 15m", what)
		}
	}
}
