package bundle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

// account makes an account of the agent's namespace that may do anything with some resources in the
// target namespace, and returns its binding.
func (r *rig) account(name string, resources ...string) *rbacv1.RoleBinding {
	r.t.Helper()
	r.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.agent}})
	r.create(&rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.target},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: resources, Verbs: []string{"*"}}},
	})
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.target},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: r.agent}},
	}
	r.create(binding)
	return binding
}

// untilRemoved waits until nothing is left of a release, its history included.
func (r *rig) untilRemoved(run *running, releaseName string) {
	r.t.Helper()
	r.eventually("the history of "+releaseName+" is gone", func() error {
		if left := r.revisions(releaseName); left > 0 {
			return fmt.Errorf("%d revisions are left", left)
		}
		return nil
	})
	r.blocked(run, "")
}

func TestARemovalThatIsForbiddenIsNotCalledDone(t *testing.T) {
	r := newRig(t)
	run := r.start()
	binding := r.account("team", "*")
	r.deploy("web", fleet.BundleDeploymentOptions{ServiceAccount: "team"}, configMap("web", "one"), configMap("more", "one"))
	r.check(r.kube.Delete(t.Context(), binding))
	r.check(r.kube.Delete(t.Context(), r.get("web")))
	r.blocked(run, "RemovalBlocked", "release "+r.target+"/web of Bundle web", "2 objects are left",
		"ConfigMap "+r.target+"/more cannot be deleted", "forbidden", "and 1 more")
	if _, err := r.data("web"); err != nil || r.revisions("web") == 0 || strings.Contains(run.lines(), "Release removed") {
		t.Errorf("the object is there (%v), with %d revisions of its history", err, r.revisions("web"))
	}
	run.stop()
	run = r.start() // what is half removed is known after a restart
	r.blocked(run, "RemovalBlocked", "cannot be deleted")
	binding.ResourceVersion, binding.UID = "", ""
	r.create(binding)
	r.untilRemoved(run, "web")
	if _, err := r.data("web"); !apierrors.IsNotFound(err) {
		t.Errorf("reading what should be gone: %v", err)
	}
}

func TestARemovalThatWaitsForAFinalizerSaysSo(t *testing.T) {
	r := newRig(t)
	run := r.start()
	held := file("held.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: held\n  finalizers: [example.com/hold]\ndata: {key: one}\n")
	r.deploy("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"), held)
	r.check(r.kube.Delete(t.Context(), r.get("web")))
	r.blocked(run, "RemovalBlocked", "1 object is left", "ConfigMap "+r.target+"/held waits for finalizer example.com/hold")
	if r.revisions("web") == 0 {
		t.Error("its history is gone")
	}
	r.edit("held", `{"metadata":{"finalizers":null}}`)
	r.untilRemoved(run, "web")
}

func TestAnObjectThatIsAnothersByNowStays(t *testing.T) {
	r := newRig(t)
	run := r.start()
	r.deploy("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"), configMap("taken", "one"))
	r.edit("taken", `{"metadata":{"annotations":{"meta.helm.sh/release-name":"other"}}}`)
	r.check(r.kube.Delete(t.Context(), r.get("web")))
	r.untilRemoved(run, "web")
	if r.uid(r.target, "taken") == "" {
		t.Error("what another release has taken was deleted")
	}
}

func TestABundleIsDividedWithoutLosingItsClaim(t *testing.T) {
	r := newRig(t)
	run := r.start()
	r.deploy("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	r.place("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"), file("claim.yaml", claim), configMap("goes", "one"))
	r.until("web", fleet.StateNotReady) // no controller binds the claim
	_, before := r.claimed()
	r.place("data", fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{TakeOwnership: true}}, file("claim.yaml", claim))
	r.until("data", fleet.StateNotReady)
	r.deploy("web", fleet.BundleDeploymentOptions{}, configMap("web", "two"))
	if r.uid(r.target, "goes") != "" {
		t.Error("what left the Bundle, and no other one has, is there")
	}
	r.check(r.kube.Delete(t.Context(), r.get("web")))
	r.untilRemoved(run, "web")
	if of, after := r.claimed(); of != "data" || after != before {
		t.Errorf("the claim was %s, and is %s of release %s", before, after, of)
	}
}

func TestWhatSomebodyKeepsOnTheMemberStays(t *testing.T) {
	r := newRig(t)
	run := r.start()
	const keep = `{"metadata":{"annotations":{"helm.sh/resource-policy":"keep"}}}`
	r.deploy("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"), configMap("dropped", "one"), configMap("removed", "one"))
	r.edit("dropped", keep)
	r.edit("removed", keep)
	before := r.uids("dropped", "removed")
	r.deploy("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"), configMap("removed", "two"))
	r.check(r.kube.Delete(t.Context(), r.get("web")))
	r.untilRemoved(run, "web")
	if after := r.uids("dropped", "removed"); !slices.Equal(before, after) || r.uid(r.target, "web") != "" {
		t.Errorf("the UIDs of what is kept were %v and are %v; that of the other is %q", before, after, r.uid(r.target, "web"))
	}
}

func TestABundleThatIsOnlyNamedLikeAnAgentsIsRemoved(t *testing.T) {
	r := newRig(t)
	run := r.start()
	r.deploy("fleet-agent-monitoring", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	r.check(r.kube.Delete(t.Context(), r.get("fleet-agent-monitoring")))
	r.untilRemoved(run, "fleet-agent-monitoring")
	if r.uid(r.target, "web") != "" {
		t.Error("what it brought is there")
	}
}

func TestHookObjectsGoWithTheirBundle(t *testing.T) {
	r := newRig(t)
	run := r.start()
	hook := func(name, more string) fleet.BundleResource {
		return file("templates/"+name+".yaml",
			fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  annotations: {helm.sh/hook: pre-install%s}\n", name, more))
	}
	r.place("web", fleet.BundleDeploymentOptions{},
		file("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"), hook("hooked", ""), hook("kept", ", helm.sh/resource-policy: keep"),
		file("templates/web.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"))
	r.until("web", fleet.StateReady)
	r.check(r.kube.Delete(t.Context(), r.get("web")))
	r.untilRemoved(run, "web")
	if r.uid(r.target, "hooked") != "" || r.uid(r.target, "kept") == "" {
		t.Errorf("the hook that goes is %q, the one that stays %q", r.uid(r.target, "hooked"), r.uid(r.target, "kept"))
	}
}

func TestHookObjectsThatHoldDataStay(t *testing.T) {
	r := newRig(t)
	run := r.start()
	own := r.target + "-own"
	hook := func(path, head, name, more, rest string) fleet.BundleResource {
		return file("templates/"+path+".yaml", head+"\nmetadata: {name: "+name+", annotations: {helm.sh/hook: pre-install"+more+"}}\n"+rest)
	}
	const claimed = "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}\n"
	group := r.target + ".example.com"
	r.place("web", fleet.BundleDeploymentOptions{},
		file("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
		file("templates/web.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"),
		hook("claim", "apiVersion: v1\nkind: PersistentVolumeClaim", "hooked", "", claimed),
		hook("password", "apiVersion: v1\nkind: Secret", "password", ", helm.sh/hook-delete-policy: before-hook-creation",
			"stringData: {key: one}\n"),
		hook("passing", "apiVersion: v1\nkind: Secret", "passing", ", helm.sh/hook-delete-policy: hook-succeeded", ""),
		hook("own", "apiVersion: v1\nkind: Namespace", own, "", ""),
		hook("kind", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition", "things."+group, "", fmt.Sprintf(
			"spec: {group: %s, scope: Namespaced, names: {kind: Thing, plural: things}, versions: [{name: v1, served: true, storage: true, schema: "+
				"{openAPIV3Schema: {type: object}}}]}\n", group)))
	r.until("web", fleet.StateReady)
	uids := func() map[string]types.UID {
		all := map[string]types.UID{}
		for _, object := range []client.Object{
			&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "hooked", Namespace: r.target}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "password", Namespace: r.target}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "passing", Namespace: r.target}},
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: own}},
			&metav1.PartialObjectMetadata{
				TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
				ObjectMeta: metav1.ObjectMeta{Name: "things." + group},
			},
		} {
			r.check(client.IgnoreNotFound(r.kube.Get(t.Context(), client.ObjectKeyFromObject(object), object)))
			if object.GetUID() != "" && object.GetDeletionTimestamp() == nil {
				all[object.GetName()] = object.GetUID()
			}
		}
		return all
	}
	before := uids()
	r.check(r.kube.Delete(t.Context(), r.get("web")))
	r.untilRemoved(run, "web")
	if after := uids(); !maps.Equal(before, after) || len(before) != 4 || r.uid(r.target, "web") != "" {
		t.Errorf("the hook objects were %v and are %v; the ConfigMap is %q", before, after, r.uid(r.target, "web"))
	}
}

func TestANamespaceThatHoldsSomethingElseStays(t *testing.T) {
	r := newRig(t)
	run := r.start()
	taken, shared := r.target+"-taken", r.target+"-shared"
	for name, namespace := range map[string]string{"taken": taken, "shared": shared, "found": r.target} {
		r.deploy(name, fleet.BundleDeploymentOptions{DefaultNamespace: namespace, DeleteNamespace: true}, configMap("web", "one"))
	}
	r.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "mine", Namespace: shared}})
	for _, name := range []string{"taken", "shared", "found"} {
		r.check(r.kube.Delete(t.Context(), r.get(name)))
		r.untilRemoved(run, name)
	}
	going := func(name string) bool {
		found := &corev1.Namespace{}
		err := r.kube.Get(t.Context(), client.ObjectKey{Name: name}, found)
		return apierrors.IsNotFound(err) || found.DeletionTimestamp != nil
	}
	if !going(taken) || going(shared) || going(r.target) {
		t.Errorf("the one made for the release goes: %t, the one with another's object: %t, the one that was there before: %t",
			going(taken), going(shared), going(r.target))
	}
	for _, part := range []string{"holds ConfigMap mine", "it was not created for this release"} {
		if !strings.Contains(run.lines(), part) {
			t.Errorf("the log does not say %q", part)
		}
	}
}

func TestMovingLeavesANamespaceThatHoldsSomethingElse(t *testing.T) {
	r := newRig(t)
	r.start()
	first := r.target + "-first"
	r.deploy("web", fleet.BundleDeploymentOptions{DefaultNamespace: first, DeleteNamespace: true}, configMap("web", "one"))
	r.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "mine", Namespace: first}})
	r.place("web", fleet.BundleDeploymentOptions{TargetNamespace: r.target, DeleteNamespace: true}, configMap("web", "one"))
	r.eventually("the release is in the other namespace", func() error {
		if found := r.get("web"); !strings.HasPrefix(found.Status.Release, r.target+"/web:") {
			return errors.New(found.Status.Release)
		}
		return nil
	})
	found := &corev1.Namespace{}
	r.check(r.kube.Get(t.Context(), client.ObjectKey{Name: first}, found))
	if found.DeletionTimestamp != nil || r.uid(first, "web") != "" || r.uid(first, "mine") == "" {
		t.Errorf("the namespace is %+v", found.ObjectMeta)
	}
}

// brokenAPI registers an API that nothing serves, and returns how to take it away.
func (r *rig) brokenAPI(group string) (mend func()) {
	r.t.Helper()
	service := r.object(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}, "", "v1."+group)
	service.Object["spec"] = map[string]any{
		"group": group, "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(10), "insecureSkipTLSVerify": true,
		"service": map[string]any{"namespace": "default", "name": "nobody"},
	}
	r.create(service)
	mend = func() { _ = r.kube.Delete(context.Background(), service) } // it may be gone already
	r.t.Cleanup(mend)
	return mend
}

func TestABrokenAPIThatHoldsNothingHoldsNoNamespaceUp(t *testing.T) {
	r := newRigAlone(t)
	run := r.start()
	r.brokenAPI("metrics.k8s.io")
	going := func(name string) bool {
		found := &corev1.Namespace{}
		err := r.kube.Get(t.Context(), client.ObjectKey{Name: name}, found)
		return apierrors.IsNotFound(err) || found.DeletionTimestamp != nil
	}
	for _, name := range []string{"web", "db"} {
		r.deploy(name, fleet.BundleDeploymentOptions{DefaultNamespace: r.target + "-" + name, DeleteNamespace: true}, configMap(name, "one"))
	}
	begun := time.Now()
	r.check(r.kube.Delete(t.Context(), r.get("web")))
	r.untilRemoved(run, "web")
	if !going(r.target + "-web") {
		t.Error("the namespace stays")
	}
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("the removal took %s", took)
	}
	mend := r.brokenAPI("broken.example.com")
	r.check(r.kube.Delete(t.Context(), r.get("db")))
	r.blocked(run, reasons.RemovalBlocked, "APIService v1.broken.example.com is not available", "namespace "+r.target+"-db")
	if r.uid(r.target+"-db", "db") != "" || going(r.target+"-db") {
		t.Error("an object stays, or a namespace goes that may hold one of another")
	}
	mend()
	r.untilRemoved(run, "db")
	if !going(r.target + "-db") {
		t.Error("the namespace stays although all of it is known")
	}
}
