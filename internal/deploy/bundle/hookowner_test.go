package bundle

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// hookOf is a ConfigMap that is a hook.
func hookOf(name, event string) fleet.BundleResource {
	return file("hook.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "+name+", annotations: {helm.sh/hook: '"+event+"'}}\n")
}

func (r *rig) users(name string) *corev1.ConfigMap {
	r.t.Helper()
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.target, Name: name}}
	r.create(o)
	return o
}

func (r *rig) isStill(name string, before types.UID) {
	r.t.Helper()
	if is := r.uid(r.target, name); is != before {
		r.t.Errorf("ConfigMap %s was %s and is %q", name, before, is)
	}
}

func TestAHookReplacesNoObjectOfAnotherOwner(t *testing.T) {
	r := newRig(t)
	r.start()
	settings := r.users("settings")
	refused := func(bundle string, parts ...string) {
		t.Helper()
		r.until(bundle, fleet.StateErrApplied, append(parts, "cannot be deployed with Bundle "+bundle+", because it")...)
	}
	r.place("web", fleet.BundleDeploymentOptions{}, hookOf("settings", "pre-install"), configMap("web", "one"))
	refused("web", "ConfigMap "+r.target+"/settings")
	r.place("web", fleet.BundleDeploymentOptions{}, hookOf("settings", "pre-install"), configMap("web", "two")) // after a failed revision
	refused("web", "ConfigMap "+r.target+"/settings")
	r.isStill("settings", settings.UID)
	takes := fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{TakeOwnership: true}}
	r.deploy("web", takes, hookOf("settings", "pre-install,pre-upgrade"), configMap("web", "three"))
	hook := r.uid(r.target, "settings")
	if hook == settings.UID {
		t.Error("helm.takeOwnership takes nothing")
	}
	r.deploy("web", fleet.BundleDeploymentOptions{}, hookOf("settings", "pre-install,pre-upgrade"), configMap("web", "four"))
	if again := r.uid(r.target, "settings"); again == hook || again == "" {
		t.Errorf("the next run of the hook is %q", again)
	}

	hook = r.uid(r.target, "settings")
	r.place("other", fleet.BundleDeploymentOptions{}, hookOf("settings", "pre-install"), configMap("other", "one"))
	refused("other", "it belongs to Bundle web (release "+r.target+"/web)")
	r.isStill("settings", hook)
}

// TestAHookReplacesNoNamespaceOfAnotherOwner takes a name that no Bundle may take, because a
// namespace holds data.
func TestAHookReplacesNoNamespaceOfAnotherOwner(t *testing.T) {
	r := newRig(t)
	r.start()
	users := r.namespaceAt(r.target + "-users")
	r.create(users)
	takes := fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{TakeOwnership: true}}
	hook := file("hook.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+users.Name+", annotations: {helm.sh/hook: pre-install}}\n")
	r.place("web", takes, hook, configMap("web", "one"))
	r.until("web", fleet.StateErrApplied, "Namespace "+users.Name, "cannot be deployed with Bundle web")
	found := &corev1.Namespace{}
	r.check(r.kube.Get(t.Context(), client.ObjectKeyFromObject(users), found))
	if found.UID != users.UID || found.DeletionTimestamp != nil {
		t.Errorf("the namespace is deleted: %+v", found.ObjectMeta)
	}
}

func TestARemovalReplacesNoObjectOfAnotherOwnerByItsHook(t *testing.T) {
	r := newRig(t)
	run := r.start()
	r.deploy("web", fleet.BundleDeploymentOptions{}, hookOf("drain", "pre-delete"), configMap("web", "one"))
	drain := r.users("drain")
	r.check(r.kube.Delete(t.Context(), r.get("web")))
	r.blocked(run, "RemovalBlocked", `ConfigMap "drain" in namespace "`+r.target+`" exists and cannot be imported`)
	r.isStill("drain", drain.UID)
	r.check(r.kube.Delete(t.Context(), drain))
	r.untilRemoved(run, "web")
}

// TestAHookOfRancherFleetsAgentMakesWay has a hook without marks of its release, which only the
// history knows.
func TestAHookOfRancherFleetsAgentMakesWay(t *testing.T) {
	r := newRigAlone(t)
	theirs := r.theirs("web", "web", r.target)
	theirs.deploy(hookOf("settings", "pre-install,pre-upgrade"), configMap("web", "one"))
	before := r.uid(r.target, "settings")
	r.start()
	r.deploy("web", fleet.BundleDeploymentOptions{}, hookOf("settings", "pre-install,pre-upgrade"), configMap("web", "two"))
	if after := r.uid(r.target, "settings"); after == before || after == "" {
		t.Errorf("the hook was %s and is %q", before, after)
	}
}
