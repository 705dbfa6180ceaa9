package bundle

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/deploy/release"
)

const enforce = "pod-security.kubernetes.io/enforce"

// withLabels returns options for a namespace with labels.
func withLabels(namespace string, labels map[string]string) fleet.BundleDeploymentOptions {
	return fleet.BundleDeploymentOptions{DefaultNamespace: namespace, NamespaceLabels: labels}
}

// untilLabels waits until a namespace has exactly these labels besides its name.
func (r *rig) untilLabels(namespace string, want map[string]string) {
	r.t.Helper()
	r.eventually(fmt.Sprintf("namespace %s has labels %v", namespace, want), func() error {
		found := &corev1.Namespace{}
		err := r.kube.Get(r.t.Context(), client.ObjectKey{Name: namespace}, found)
		maps.DeleteFunc(found.Labels, func(key, _ string) bool { return slices.Contains([]string{"name", "kubernetes.io/metadata.name"}, key) })
		if err == nil && !maps.Equal(found.Labels, want) {
			err = fmt.Errorf("it has %v", found.Labels)
		}
		return err
	})
}

func (r *rig) namespaceAt(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestLabelsOfANamespaceAreTakenBackAndOnesOfOthersStay(t *testing.T) {
	r := newRig(t)
	r.start()
	psa := r.target + "-psa"
	options := withLabels(psa, map[string]string{enforce: "privileged", "team": "a"})
	options.NamespaceAnnotations = map[string]string{"note": "hello"}
	r.deploy("web", options, configMap("web", "one"))
	r.untilLabels(psa, options.NamespaceLabels)
	r.patchAs("kubectl-label", r.namespaceAt(psa), `{"metadata":{"labels":{"owner":"me"},"annotations":{"of":"others"}}}`)

	options.NamespaceLabels, options.NamespaceAnnotations = map[string]string{"team": "a"}, nil
	r.deploy("web", options, configMap("web", "one"))
	r.untilLabels(psa, map[string]string{"team": "a", "owner": "me"})
	found := r.namespaceAt(psa)
	r.check(r.kube.Get(t.Context(), client.ObjectKeyFromObject(found), found))
	if _, there := found.Annotations["note"]; there || found.Annotations["of"] != "others" {
		t.Errorf("annotations are %v", found.Annotations)
	}
	options.NamespaceLabels = nil
	r.deploy("web", options, configMap("web", "one"))
	r.untilLabels(psa, map[string]string{"owner": "me"})
}

func TestEachBundleOwnsItsLabelsOfASharedNamespace(t *testing.T) {
	r := newRig(t)
	r.start()
	r.deploy("one", withLabels(r.target, map[string]string{"one": "1", "both": "x"}), configMap("one", "a"))
	r.deploy("two", withLabels(r.target, map[string]string{"two": "2", "both": "x"}), configMap("two", "a"))
	r.place("two", withLabels(r.target, map[string]string{"two": "2", "both": "y"}), configMap("two", "b"))
	r.until("two", fleet.StateErrApplied, "label both of namespace "+r.target+" has another value from Bundle one")
	r.untilLabels(r.target, map[string]string{"one": "1", "two": "2", "both": "x"})
	if got, err := r.data("two"); err != nil || got != "a" {
		t.Errorf("half of it was deployed: %q %v", got, err)
	}
	r.deploy("two", withLabels(r.target, map[string]string{"two": "2", "both": "x"}), configMap("two", "b"))
	r.check(r.kube.Delete(t.Context(), r.get("one")))
	r.untilLabels(r.target, map[string]string{"two": "2", "both": "x"})
	r.patchAs("kubectl-label", r.namespaceAt(r.target), `{"metadata":{"labels":{"two":"by-hand"}}}`)
	r.place("two", withLabels(r.target, map[string]string{"two": "2"}), configMap("two", "c"))
	r.until("two", fleet.StateErrApplied, "label two of namespace "+r.target+" has another value from field manager kubectl-label")
	takes := withLabels(r.target, map[string]string{"two": "2"})
	takes.Helm = &fleet.HelmOptions{TakeOwnership: true}
	r.deploy("two", takes, configMap("two", "c"))
	r.untilLabels(r.target, map[string]string{"two": "2"})
	// The release goes on under another name, and its labels stay.
	takes.Helm.ReleaseName = "renamed"
	r.deploy("two", takes, configMap("two", "d"))
	r.untilLabels(r.target, map[string]string{"two": "2"})
	r.check(r.kube.Delete(t.Context(), r.get("two")))
	r.untilLabels(r.target, map[string]string{})
}

func TestLabelsOfAnEarlierVersionAreTakenBack(t *testing.T) {
	r := newRig(t)
	r.start()
	r.patchAs(release.FieldManager, r.namespaceAt(r.target),
		`{"metadata":{"labels":{"`+enforce+`":"privileged","team":"a","of":"another"}}}`)
	r.deploy("web", withLabels(r.target, map[string]string{enforce: "privileged", "team": "b"}), configMap("web", "one"))
	r.untilLabels(r.target, map[string]string{enforce: "privileged", "team": "b", "of": "another"})
	r.deploy("web", withLabels(r.target, nil), configMap("web", "one"))
	r.untilLabels(r.target, map[string]string{"of": "another"})
}

func TestNoBundleLabelsANamespaceOfKubernetes(t *testing.T) {
	r := newRig(t)
	r.start()
	r.place("system", withLabels("kube-system", map[string]string{enforce: "privileged"}), configMap("system-labels", "one"))
	r.until("system", fleet.StateErrApplied, "namespace kube-system belongs to Kubernetes or to the agent")
	r.place("agent", withLabels(r.agent, map[string]string{enforce: "privileged"}), configMap("agent-labels", "one"))
	r.until("agent", fleet.StateErrApplied, "namespace "+r.agent+" belongs to Kubernetes or to the agent")
	for _, namespace := range []string{"kube-system", r.agent} {
		found := r.namespaceAt(namespace)
		r.check(r.kube.Get(t.Context(), client.ObjectKeyFromObject(found), found))
		if found.Labels[enforce] != "" {
			t.Errorf("namespace %s has labels %v", namespace, found.Labels)
		}
	}
}

func TestAnAccountWithoutTheRightKeepsLabelsThatAreThere(t *testing.T) {
	r := newRig(t)
	r.start()
	r.account("team", "configmaps")
	r.patchAs("kubectl-label", r.namespaceAt(r.target), `{"metadata":{"labels":{"team":"a"}}}`)
	options := withLabels(r.target, map[string]string{"team": "a"})
	options.ServiceAccount = "team"
	r.deploy("web", options, configMap("web", "one"))
	options.NamespaceLabels = map[string]string{"team": "b"}
	r.place("web", options, configMap("web", "two"))
	r.until("web", fleet.StateErrApplied, `:team" cannot patch resource "namespaces"`)
	r.untilLabels(r.target, map[string]string{"team": "a"})
}

func TestANamespaceInDeletionIsAStateAndItsEndIsAnEvent(t *testing.T) {
	r := newRig(t)
	r.start()
	going := r.target + "-going"
	r.create(r.namespaceAt(going))
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "held", Namespace: going, Finalizers: []string{"test/hold"}}}
	r.create(held)
	r.check(r.kube.Delete(t.Context(), r.namespaceAt(going)))
	r.place("web", fleet.BundleDeploymentOptions{DefaultNamespace: going}, configMap("web", "one"))
	found := r.until("web", fleet.StateWaitApplied, "namespace "+going+" is being deleted")
	for _, condition := range found.Status.Conditions {
		if condition.Type == fleet.ConditionDeployed && condition.Reason != "NamespaceTerminating" {
			t.Errorf("%s has reason %s", condition.Type, condition.Reason)
		}
	}
	r.release(held)
	if made := r.until("web", fleet.StateReady); !strings.HasPrefix(made.Status.Release, going+"/") {
		t.Errorf("the release is %s", made.Status.Release)
	}
}

func TestAPolicyForbidsADeploymentToCreateNamespaces(t *testing.T) {
	r := newRig(t)
	r.start()
	absent := r.target + "-absent"
	manifest := "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + absent + "}\n"
	hook := "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + absent + ", annotations: {helm.sh/hook: pre-install}}\n"
	forbidden := fleet.BundleDeploymentOptions{DefaultNamespace: r.target, CreateNamespace: new(false), NamespaceCreationForbiddenBy: "team"}
	into := forbidden
	into.DefaultNamespace = absent
	r.place("into", into, configMap("into", "a"))
	r.place("brings", into, file("ns.yaml", manifest), configMap("brings", "a"))
	r.place("other", forbidden, file("ns.yaml", manifest), configMap("other", "a"))
	r.place("hooked", forbidden, chartOf(file("templates/ns.yaml", hook))...)
	r.place("crds", forbidden, chartOf(file("crds/ns.yaml", manifest))...)
	for _, name := range []string{"into", "brings", "other", "hooked", "crds"} {
		r.until(name, fleet.StateErrApplied, "namespace "+absent+" does not exist", "by Policy team of namespace ", "allowNamespaceCreation")
	}
	r.untilGone(r.namespaceAt(absent))
	r.deploy("there", forbidden, configMap("there", "a"))
	r.create(r.namespaceAt(absent))
	r.place("into", into, configMap("into", "b")) // a change, so that nothing waits for the next attempt
	r.until("into", fleet.StateReady)
	found := r.namespaceAt(absent)
	if err := r.kube.Get(t.Context(), client.ObjectKeyFromObject(found), found); err != nil || found.DeletionTimestamp != nil {
		t.Errorf("the hook of another Bundle has replaced the namespace: %v, %+v", err, found.ObjectMeta)
	}
}
