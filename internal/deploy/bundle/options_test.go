package bundle

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
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

// revisions returns the number of kept revisions of a release, in all namespaces of this rig.
func (r *rig) revisions(release string) int {
	r.t.Helper()
	histories := &corev1.SecretList{}
	r.check(r.kube.List(r.t.Context(), histories, client.MatchingLabels{"owner": "helm", "name": release}))
	return len(slices.DeleteFunc(histories.Items, func(secret corev1.Secret) bool {
		return !strings.HasPrefix(secret.Namespace, r.target) && secret.Namespace != r.agent
	}))
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
	r.deploy("web", atomic, configMap("web", "one"))
	r.place("web", atomic, configMap("web", "two"), file("never.yaml", never))
	found := r.until("web", fleet.StateErrApplied, "rolled back", "never")
	t.Logf("it says %q", readyMessage(found))
	r.untilData("web", "one")
	r.place("web", atomic, configMap("web", "three"))
	r.untilData("web", "three")
	r.until("web", fleet.StateReady)
}

func TestAnAtomicInstallationThatFailsLeavesWhatRanBeforeItsHistoryWasLost(t *testing.T) {
	r := newRig(t)
	run := r.start()
	atomic := fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{Atomic: true, TimeoutSeconds: 3}}
	r.deploy("web", atomic, configMap("web", "one"))
	before := r.uids("web")
	run.stop()
	r.check(r.kube.DeleteAllOf(t.Context(), &corev1.Secret{}, client.InNamespace(r.target), client.MatchingLabels{"owner": "helm"}))
	r.place("web", atomic, configMap("web", "two"), file("never.yaml", never))
	r.start()
	r.until("web", fleet.StateErrApplied, "never")
	if after := r.uids("web"); after[0] != before[0] {
		t.Errorf("the UID was %s and is %s", before[0], after[0])
	}
	r.place("fresh", atomic, configMap("fresh", "one"), file("other.yaml", strings.ReplaceAll(never, "never", "fresh")))
	r.until("fresh", fleet.StateErrApplied, "uninstalled")
	if r.uid(r.target, "fresh") != "" {
		t.Error("what a first installation made is there although it failed")
	}
}

func TestWhatFailedRevisionsMadeGoesWhenOneSucceeds(t *testing.T) {
	r := newRig(t)
	r.start()
	waits := fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{TimeoutSeconds: 1}}
	inTarget := func(name string) fleet.BundleResource {
		return file(name+".yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "+name+", namespace: "+r.target+"}\ndata: {key: one}\n")
	}
	for _, name := range []string{"first", "second", "third"} { // more than the history usually keeps
		r.place("web", waits, configMap("stays", "one"), configMap(name, "one"), file("never.yaml", never))
		r.eventually(name+" is made", func() error {
			if r.uid(r.target, name) == "" {
				return errors.New("it is not")
			}
			return nil
		})
		r.until("web", fleet.StateErrApplied, "never")
	}
	before := r.uids("first", "second", "third", "stays")
	r.deploy("web", waits, inTarget("stays"))
	r.eventually("what failed revisions made is gone", func() error {
		for _, name := range []string{"first", "second", "third"} {
			if r.uid(r.target, name) != "" {
				return fmt.Errorf("ConfigMap %s is there", name)
			}
		}
		return nil
	})
	if after := r.uids("stays"); after[0] != before[3] {
		t.Errorf("what all have was %s and is %s", before[3], after[0])
	}
}

func TestForceReplacesWhatOthersAdded(t *testing.T) {
	r := newRig(t)
	r.start()
	r.deploy("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	r.edit("web", `{"data":{"extra":"by hand"}}`)
	r.place("web", fleet.BundleDeploymentOptions{}, configMap("web", "two"))
	r.untilData("web", "two")
	if r.delivered("web").Data["extra"] == "" {
		t.Error("what is another's was removed without force")
	}
	r.until("web", fleet.StateReady)
	r.place("web", fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{Force: true}}, configMap("web", "three"))
	r.untilData("web", "three")
	if got := r.delivered("web").Data["extra"]; got != "" {
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
	r.place("stays", fleet.BundleDeploymentOptions{}, r.definitionOf("stays", "Stays"), configMap("stays", "one"))
	r.place("goes", fleet.BundleDeploymentOptions{DeleteCRDResources: true}, r.definitionOf("goes", "Goes"), configMap("goes", "one"))
	for _, name := range []string{"stays", "goes"} {
		r.until(name, fleet.StateReady)
		r.check(r.kube.Delete(t.Context(), r.get(name)))
		r.untilGone(r.configMap(name))
	}
	r.untilGone(r.object(definitions, "", "goes."+r.group()))
	if stays := r.object(definitions, "", "stays."+r.group()); r.kube.Get(t.Context(), client.ObjectKeyFromObject(stays), stays) != nil ||
		stays.GetDeletionTimestamp() != nil {
		t.Errorf("it is %v", stays.Object)
	}
	// It is taken up by the Bundle when that comes back.
	r.deploy("stays", fleet.BundleDeploymentOptions{}, r.definitionOf("stays", "Stays"), configMap("stays", "two"))
}

func TestTheNamespaceGoesWithTheBundleIfAskedFor(t *testing.T) {
	r := newRig(t)
	r.start()
	for name, with := range map[string]bool{"with": true, "without": false} {
		r.deploy(name, fleet.BundleDeploymentOptions{DefaultNamespace: r.target + "-" + name, DeleteNamespace: with}, configMap("web", "one"))
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
	r.place("web", fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{WaitForJobs: true, TimeoutSeconds: 60}}, job,
		configMap("web", "one"))
	r.until("web", fleet.StateWaitApplied, "Helm waits for its hooks or objects")
	r.eventually("the pod of the Job is there and ends", func() error {
		pods := &corev1.PodList{}
		if err := r.kube.List(t.Context(), pods, client.InNamespace(r.target), client.MatchingLabels{"job-name": "migrate"}); err != nil {
			return err
		}
		if len(pods.Items) == 0 {
			return errors.New("there is none")
		}
		return r.kube.Status().Patch(t.Context(), &pods.Items[0],
			client.RawPatch("application/merge-patch+json", []byte(`{"status":{"phase":"Succeeded"}}`)))
	})
	r.until("web", fleet.StateReady)
}

func TestAClusterThatWasAwayGetsOnlyTheLastChange(t *testing.T) {
	r := newRig(t)
	run := r.start()
	keep := fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{MaxHistory: 10}}
	r.deploy("web", keep, configMap("web", "one"))
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
	r := newRigAlone(t) // it takes all of a processor for a minute
	r.start()
	var resources []fleet.BundleResource
	for i := range 3 {
		resources = append(resources, configMap(fmt.Sprintf("plain-%d", i), strings.Repeat("0123456789abcdef", 32<<10)))
	}
	r.deploy("large", fleet.BundleDeploymentOptions{}, resources...)

	resources = nil
	for i := range 3 {
		resources = append(resources, configMap(fmt.Sprintf("noise-%d", i), noise(450<<10)))
	}
	r.place("noise", fleet.BundleDeploymentOptions{}, resources...)
	found := r.until("noise", fleet.StateErrApplied, "two Bundles")
	t.Logf("it says %q", readyMessage(found))
	if len(readyMessage(found)) > 1000 {
		t.Error("it says too much")
	}
	for i := range 3 {
		if _, err := r.data(fmt.Sprintf("noise-%d", i)); !apierrors.IsNotFound(err) {
			t.Errorf("part of it is deployed: %v", err)
		}
	}
}
