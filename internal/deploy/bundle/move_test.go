package bundle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	contents "github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/deploy/release"
	"github.com/muster-fleet/muster/internal/hub/bundles/rollup"
	"github.com/muster-fleet/muster/internal/kube"
)

// runsOn waits until a Bundle says that it cannot be moved, and checks that what ran is untouched.
func (r *rig) runsOn(name string, before types.UID, why string) {
	r.t.Helper()
	state := fleet.StateErrApplied
	if strings.Contains(why, "is being deleted") { // which is waited for
		state = fleet.StateWaitApplied
	}
	found := r.until(name, state, "release "+r.target+"/"+name+" keeps running", why)
	if after := r.uid(r.target, name); after != before || !strings.HasPrefix(found.Status.Release, r.target+"/"+name+":") {
		r.t.Errorf("%s was %q and is %q, of release %s", name, before, after, found.Status.Release)
	}
}

func TestAMoveThatCannotBeMadeLeavesWhatRuns(t *testing.T) {
	r := newRig(t)
	r.start()
	r.account("team", "*")
	other, going, full := r.namespace("other-"), r.namespace("going-"), r.namespace("full-")
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "held", Namespace: going, Finalizers: []string{"example.com/hold"}}}
	r.create(held)
	r.check(r.kube.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: going}}))
	t.Cleanup(func() { r.release(held) })
	r.create(&corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "full", Namespace: full},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/services": quantity.MustParse("0")}},
	})
	r.eventually("the quota counts", func() error {
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "full", Namespace: full}}
		if err := r.kube.Get(t.Context(), client.ObjectKeyFromObject(quota), quota); err != nil {
			return err
		}
		if len(quota.Status.Hard) == 0 {
			return errors.New("it does not")
		}
		return nil
	})
	service := file("service.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 80}]}\n")
	invalid := file("invalid.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: invalid}\nspec: {ports: [{port: 0}]}\n")
	for name, row := range map[string]struct {
		options   fleet.BundleDeploymentOptions
		change    func(*fleet.BundleDeploymentSpec)
		resources []fleet.BundleResource
		says      string
	}{
		"template": {fleet.BundleDeploymentOptions{TargetNamespace: other}, nil, []fleet.BundleResource{
			file("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"), file("templates/web.yaml", "{{ fail \"no luck\" }}"),
		}, "no luck"},
		"content": {
			fleet.BundleDeploymentOptions{TargetNamespace: other},
			func(s *fleet.BundleDeploymentSpec) { s.DeploymentID = "s-" + strings.Repeat("0", 64) + ":1" }, nil, "reading Content",
		},
		"values": {
			fleet.BundleDeploymentOptions{TargetNamespace: other}, func(s *fleet.BundleDeploymentSpec) { s.ValuesHash = "1" },
			nil, "reading the values",
		},
		"terminating": {fleet.BundleDeploymentOptions{TargetNamespace: going}, nil, nil, "is being deleted"},
		"rights":      {fleet.BundleDeploymentOptions{TargetNamespace: other, ServiceAccount: "team"}, nil, nil, "forbidden"},
		"quota": {
			fleet.BundleDeploymentOptions{TargetNamespace: full}, nil, []fleet.BundleResource{configMap("quota", "one"), service}, "exceeded quota",
		},
		"refused": {
			fleet.BundleDeploymentOptions{DefaultNamespace: other}, nil, []fleet.BundleResource{configMap("refused", "one"), invalid},
			"Service " + other + "/invalid would be refused",
		},
		"taken": {
			fleet.BundleDeploymentOptions{DefaultNamespace: other}, nil, []fleet.BundleResource{configMap("kube-root-ca.crt", "one")},
			"already exists and belongs to no release",
		},
		"another-name": {
			*withName("other-name", r.target), nil, []fleet.BundleResource{configMap("another-name", "one"), invalid},
			"Service " + r.target + "/invalid would be refused",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r.deploy(name, fleet.BundleDeploymentOptions{}, configMap(name, "one"))
			before := r.uid(r.target, name)
			if row.change == nil {
				row.change = func(*fleet.BundleDeploymentSpec) {}
			}
			if row.resources == nil {
				row.resources = []fleet.BundleResource{configMap(name, "two")}
			}
			r.placeWith(name, row.change, row.options, row.resources...)
			r.runsOn(name, before, row.says)
			if there := r.uid(other, name) + r.uid(full, name); there != "" {
				t.Errorf("a part of it was deployed: %s", there)
			}
			r.placeWith(name, func(s *fleet.BundleDeploymentSpec) { s.ValuesHash = "" }, fleet.BundleDeploymentOptions{}, configMap(name, "one"))
			if r.until(name, fleet.StateReady); r.uid(r.target, name) != before {
				t.Error("it is another object now")
			}
			r.check(r.kube.Delete(t.Context(), r.get(name)))
		})
	}
}

// withName is options for a release of a name.
func withName(name, namespace string) *fleet.BundleDeploymentOptions {
	options := releaseName(name, namespace)
	return &options
}

// release takes the finalizers off an object.
func (r *rig) release(o client.Object) {
	r.check(client.IgnoreNotFound(r.kube.Patch(context.Background(), o,
		client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))))
}

func TestAMoveHandsOverWhatBothPlacesHave(t *testing.T) {
	r := newRig(t)
	r.start()
	role := "role-" + r.target
	hooked := func(kind, name string) fleet.BundleResource {
		spec := "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
		if kind == "Secret" {
			spec = "stringData: {key: '{{ randAlphaNum 8 }}'}\n"
		}
		return file("templates/"+name+".yaml",
			"apiVersion: v1\nkind: "+kind+"\nmetadata: {name: "+name+", annotations: {helm.sh/hook: pre-install}}\n"+spec)
	}
	all := []fleet.BundleResource{
		file("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
		file("templates/claim.yaml", strings.ReplaceAll(claim, "name: data", "name: data, namespace: "+r.target)),
		file("templates/role.yaml", "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: "+role+"}\nrules: []\n"),
		file("templates/web.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"),
		file("templates/named.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'of-{{ .Release.Name }}'}\n"),
		hooked("PersistentVolumeClaim", "hooked"), hooked("Secret", "password"),
	}
	roleUID := func() types.UID {
		found := &rbacv1.ClusterRole{}
		r.check(client.IgnoreNotFound(r.kube.Get(t.Context(), client.ObjectKey{Name: role}, found)))
		return found.UID
	}
	r.place("web", releaseName("one", r.target), all...)
	r.until("web", fleet.StateNotReady) // no controller binds the claim
	secret := func() types.UID {
		found := &corev1.Secret{}
		r.check(r.kube.Get(t.Context(), client.ObjectKey{Namespace: r.target, Name: "password"}, found))
		return found.UID
	}
	_, dataBefore := r.claimed()
	before := []types.UID{dataBefore, roleUID(), r.uid(r.target, "web"), r.claimUID("hooked"), secret()}
	r.place("web", releaseName("two", r.target), all...)
	r.eventually("only the new release is there", func() error {
		if all := r.listed(r.target); !maps.Equal(all, map[string]int{"two": 1}) {
			return fmt.Errorf("helm list shows %v", all)
		}
		return nil
	})
	owner, dataAfter := r.claimed()
	after := []types.UID{dataAfter, roleUID(), r.uid(r.target, "web"), r.claimUID("hooked"), secret()}
	if owner != "two" || !slices.Equal(before, after) || slices.Contains(before, "") {
		t.Errorf("the objects were %q and are %q; the claim is release %s's", before, after, owner)
	}
	if r.uid(r.target, "of-one") != "" || r.uid(r.target, "of-two") == "" {
		t.Error("what only the release before had is there, or what only the new one has is not")
	}
	elsewhere := r.namespace("elsewhere-")
	r.place("web", releaseName("two", elsewhere), all...)
	r.eventually("the release is elsewhere", func() error {
		if here, there := r.listed(r.target), r.listed(elsewhere); len(here) > 0 || there["two"] == 0 {
			return fmt.Errorf("helm list shows %v and %v", here, there)
		}
		return nil
	})
	if _, data := r.claimed(); data != dataBefore || roleUID() != before[1] || r.uid(r.target, "web") != "" || r.uid(elsewhere, "web") == "" {
		t.Errorf("the claim was %s and is %s, the ClusterRole %s and %s", dataBefore, data, before[1], roleUID())
	}
	r.check(r.kube.Delete(t.Context(), r.get("web")))
	r.eventually("all goes with the Bundle", func() error {
		if _, data := r.claimed(); data != "" || roleUID() != "" || r.uid(elsewhere, "web") != "" || len(r.listed(elsewhere)) > 0 {
			return fmt.Errorf("the claim is %q, the ClusterRole %q", data, roleUID())
		}
		return nil
	})
}

func TestAMoveReplacesWhatItCannotChangeUnlessItHoldsData(t *testing.T) {
	r := newRig(t)
	r.start()
	selected := func(kind, name, more string) fleet.BundleResource {
		return file("templates/"+name+".yaml", "apiVersion: apps/v1\nkind: "+kind+"\nmetadata: {name: "+name+
			"}\nspec: {replicas: 0, selector: {matchLabels: {release: '{{ .Release.Name }}'}}, "+
			"template: {metadata: {labels: {release: '{{ .Release.Name }}'}}, spec: {containers: [{name: a, image: a}]}}"+more+"}\n")
	}
	chart := file("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n")
	all := []fleet.BundleResource{chart, selected("Deployment", "web", ""),
		file("templates/web-map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n")}
	deployment := func() *appsv1.Deployment {
		found := &appsv1.Deployment{}
		r.check(client.IgnoreNotFound(r.kube.Get(t.Context(), client.ObjectKey{Namespace: r.target, Name: "web"}, found)))
		return found
	}
	r.deploy("web", releaseName("one", r.target), all...)
	before, kept := deployment(), r.uid(r.target, "web")
	set := selected("StatefulSet", "set", ", serviceName: set, persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}")
	r.place("web", releaseName("two", r.target), append(slices.Clone(all), selected("Deployment", "more", ", strategy: {type: Wrong}"))...)
	r.until("web", fleet.StateErrApplied, "release "+r.target+"/one keeps running", "Deployment "+r.target+"/more would be refused")
	if is := deployment(); is.UID != before.UID {
		t.Errorf("it was %s, and is %s before all else can be deployed", before.UID, is.UID)
	}
	r.place("web", releaseName("two", r.target), all...)
	r.until("web", fleet.StateReady)
	if is := deployment(); is.UID == before.UID || is.Spec.Selector.MatchLabels["release"] != "two" || r.uid(r.target, "web") != kept {
		t.Errorf("it was %s and is %s, which selects %v; the ConfigMap was %s", before.UID, is.UID, is.Spec.Selector, kept)
	}
	r.deploy("web", releaseName("two", r.target), append(slices.Clone(all), set)...)
	r.place("web", releaseName("three", r.target), append(slices.Clone(all), set)...)
	r.until("web", fleet.StateErrApplied, "release "+r.target+"/two keeps running", "its PersistentVolumeClaims would be deleted with it")
	if is := deployment(); is.Spec.Selector.MatchLabels["release"] != "two" {
		t.Errorf("it selects %v", is.Spec.Selector)
	}
}

func TestAReleaseOnTheMoveIsNotReady(t *testing.T) {
	const first, second = "s-1:a", "s-1:b"
	elsewhere := release.Summary{Name: "web", Namespace: "old", Deployed: true, DeploymentID: first}
	for name, row := range map[string]struct {
		wanted string
		state  State
		of     observed
	}{
		"while it is deployed where it has to be": {second, Moving, observed{release: elsewhere}},
		"while it is removed where it was": {second, Moving, observed{
			release: release.Summary{Deployed: true, DeploymentID: second}, others: 1,
		}},
		"while a move is taken back": {first, Deploying, observed{release: elsewhere, others: 1, superseded: true}},
	} {
		s := observation{observed: row.of, deployment: &fleet.BundleDeployment{
			Spec: fleet.BundleDeploymentSpec{DeploymentID: row.wanted},
			Status: fleet.BundleDeploymentStatus{
				AppliedDeploymentID: first, Ready: true, NonModified: true,
				Conditions: []fleet.Condition{kube.Condition(fleet.ConditionReady, true, "", "")},
			},
		}}
		s.found = true
		after := s.deployment.DeepCopy()
		after.Status = statusOf(decision{State: row.state, Reason: "moving"}, s, time.Now())
		ready := kube.FindCondition(after.Status.Conditions, fleet.ConditionReady)
		if state := contents.StateOf(after); rollup.Available(after) || ready.Status != corev1.ConditionFalse {
			t.Errorf("%s: it is %s, and the condition Ready is %s", name, state, ready.Status)
		}
	}
}

// claimUID is the UID of a PersistentVolumeClaim in the target namespace.
func (r *rig) claimUID(name string) types.UID {
	found := &corev1.PersistentVolumeClaim{}
	r.check(client.IgnoreNotFound(r.kube.Get(r.t.Context(), client.ObjectKey{Namespace: r.target, Name: name}, found)))
	if found.DeletionTimestamp != nil {
		return ""
	}
	return found.UID
}

func TestAMoveIsNotReadyUntilNothingIsLeftWhereItWas(t *testing.T) {
	r := newRig(t)
	run := r.start()
	other := r.namespace("other-")
	held := file("held.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: held\n  finalizers: [example.com/hold]\n")
	r.deploy("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"), held)
	before := r.get("web").Status.AppliedDeploymentID
	r.place("web", fleet.BundleDeploymentOptions{DefaultNamespace: other}, configMap("web", "one"))
	says := []string{"release " + r.target + "/web of Bundle web is not removed yet",
		"ConfigMap " + r.target + "/held waits for finalizer example.com/hold"}
	for range 2 { // also after a restart
		found := r.until("web", fleet.StateErrApplied, says...)
		if found.Status.AppliedDeploymentID != before || r.uid(other, "web") == "" {
			t.Errorf("it is called deployed, or is not: %+v", found.Status)
		}
		run.stop()
		r.change(found, func() { found.Status.Conditions = nil })
		r.check(r.kube.Status().Update(t.Context(), found))
		run = r.start()
	}
	r.until("web", fleet.StateErrApplied, says...)
	r.edit("held", `{"metadata":{"finalizers":null}}`)
	r.until("web", fleet.StateReady)
	if left := r.listed(r.target); len(left) > 0 {
		t.Errorf("helm list shows %v where it was", left)
	}
	r.check(r.kube.Delete(t.Context(), r.get("web")))
	r.untilRemoved(run, "web")
}

func TestAMoveThatFailsHalfwayIsTakenBack(t *testing.T) {
	r := newRig(t)
	run := r.start()
	pod := file("pod.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: never}\nspec: {containers: [{name: a, image: a}]}\n")
	first := releaseName("one", r.target)
	r.place("web", first, configMap("web", "one"), file("claim.yaml", claim))
	r.until("web", fleet.StateNotReady)
	_, claimBefore := r.claimed()
	before := r.uid(r.target, "web")
	second := releaseName("two", r.target)
	second.Helm.TimeoutSeconds = 2
	r.place("web", second, configMap("web", "two"), file("claim.yaml", claim), pod)
	r.until("web", fleet.StateErrApplied, "release "+r.target+"/one keeps running")
	if all := r.listed(r.target); all["one"] == 0 || all["two"] == 0 {
		t.Errorf("helm list shows %v", all)
	}
	run.stop()
	run = r.start()
	r.until("web", fleet.StateErrApplied, "release "+r.target+"/one keeps running")
	r.place("web", first, configMap("web", "one"), file("claim.yaml", claim))
	r.eventually("only the first release is there", func() error {
		if all := r.listed(r.target); len(all) != 1 || all["one"] == 0 {
			return fmt.Errorf("helm list shows %v", all)
		}
		return nil
	})
	r.until("web", fleet.StateNotReady)
	owner, claimAfter := r.claimed()
	if data, err := r.data("web"); owner != "one" || claimAfter != claimBefore || r.uid(r.target, "web") != before ||
		data != "one" || err != nil {
		t.Errorf("the claim was %s and is %s of release %s, the other object was %s and is %s with %q",
			claimBefore, claimAfter, owner, before, r.uid(r.target, "web"), data)
	}
	left := &corev1.Pod{}
	if err := r.kube.Get(t.Context(), client.ObjectKey{Namespace: r.target, Name: "never"}, left); err == nil &&
		left.DeletionTimestamp == nil {
		t.Error("what only the attempt had is there")
	}
	r.check(r.kube.Delete(t.Context(), r.get("web")))
	r.untilRemoved(run, "one")
}

// writes are those that a process has left before it ends.
type writes struct {
	left  atomic.Int32
	spent atomic.Bool
}

// lasting carries out the writes that are left, and none after that.
type lasting struct {
	http.RoundTripper
	*writes
}

func (l lasting) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet && request.URL.Query().Get("dryRun") == "" && l.left.Add(-1) < 0 {
		l.spent.Store(true)
		return nil, errors.New("cut off")
	}
	return l.RoundTripper.RoundTrip(request)
}

func TestAMoveThatIsCutOffAtAnyWriteGoesOn(t *testing.T) { newRig(t).cutOffMoves("two") }

func TestAMoveThatIsCutOffAtAnyWriteIsTakenBack(t *testing.T) { newRig(t).cutOffMoves("one") }

// cutOffMoves moves releases from one name to another, each cut off one write later than the one
// before, and has them end under a name.
func (r *rig) cutOffMoves(end string) {
	t, run := r.t, r.start()
	const most = 30
	name := func(i int) string { return fmt.Sprintf("web-%d", i) }
	resources := func(i int) []fleet.BundleResource {
		return []fleet.BundleResource{
			file("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
			file("templates/both.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "+name(i)+"}\n"),
			file("templates/own.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'of-{{ .Release.Name }}'}\n"),
		}
	}
	before := map[int]types.UID{}
	for i := range most {
		r.place(name(i), releaseName(fmt.Sprintf("one-%d", i), r.target), resources(i)...)
	}
	for i := range most {
		r.until(name(i), fleet.StateReady)
		before[i] = r.uid(r.target, name(i))
	}
	run.stop()
	moved := 0
	for whole := false; moved < most && !whole; moved++ {
		connection := &writes{}
		connection.left.Store(int32(moved))
		r.place(name(moved), releaseName(fmt.Sprintf("two-%d", moved), r.target), resources(moved)...)
		cut := r.startOn(r.reach(func(next http.RoundTripper) http.RoundTripper { return lasting{next, connection} }))
		r.eventually("it is cut off, or ready", func() error {
			whole = contents.StateOf(r.get(name(moved))) == fleet.StateReady
			if !whole && !connection.spent.Load() {
				return errors.New("neither")
			}
			return nil
		})
		cut.stop()
		if r.uid(r.target, name(moved)) != before[moved] {
			t.Errorf("after %d writes it is another object", moved)
		}
		if r.uid(r.target, fmt.Sprintf("of-one-%d", moved)) == "" && r.uid(r.target, fmt.Sprintf("of-two-%d", moved)) == "" {
			t.Errorf("after %d writes nothing runs", moved)
		}
		r.place(name(moved), releaseName(fmt.Sprintf("%s-%d", end, moved), r.target), resources(moved)...)
		run = r.start()
		r.eventually("it is ready, and nothing is left elsewhere", func() error {
			listed := r.listed(r.target)
			if state := contents.StateOf(r.get(name(moved))); state != fleet.StateReady || len(listed) != most ||
				listed[fmt.Sprintf("%s-%d", end, moved)] == 0 {
				return fmt.Errorf("it is %s, and helm list shows %v", state, listed)
			}
			return nil
		})
		run.stop()
	}
	if moved < 8 || moved == most {
		t.Errorf("a move takes %d writes", moved)
	}
	t.Logf("it was cut off after each of %d writes", moved-1)
	listed := r.listed(r.target)
	for i := range most {
		place := end
		if i >= moved {
			place = "one"
		}
		if is := r.uid(r.target, name(i)); is != before[i] || listed[fmt.Sprintf("%s-%d", place, i)] == 0 ||
			r.uid(r.target, fmt.Sprintf("of-%s-%d", place, i)) == "" {
			t.Errorf("%s was %s and is %s; helm list shows %v", name(i), before[i], is, listed)
		}
	}
}

func TestAMoveEndsWhereSomebodyDeletesTheHistoryOfTheReleaseBefore(t *testing.T) {
	r := newRig(t)
	run := r.start()
	other := r.namespace("other-")
	held := file("held.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: held\n  finalizers: [example.com/hold]\n")
	r.deploy("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"), held)
	run.stop()
	r.renewReport() // the release is of an earlier membership
	r.start()
	r.place("web", fleet.BundleDeploymentOptions{DefaultNamespace: other}, configMap("web", "one"))
	r.until("web", fleet.StateErrApplied, "is not removed yet")
	r.check(r.kube.DeleteAllOf(t.Context(), &corev1.Secret{}, client.InNamespace(r.target), client.MatchingLabels{
		"owner": "helm", "name": "web",
	}))
	r.until("web", fleet.StateReady)
	r.edit("held", `{"metadata":{"finalizers":null}}`)
}

func TestABundleThatIsDeletedWhileItMovesLeavesNothing(t *testing.T) {
	r := newRig(t)
	run := r.start()
	other := r.namespace("other-")
	held := file("held.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: held\n  finalizers: [example.com/hold]\n")
	r.deploy("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"), held)
	r.place("web", fleet.BundleDeploymentOptions{DefaultNamespace: other}, configMap("web", "one"))
	r.until("web", fleet.StateErrApplied, "is not removed yet")
	if state := contents.StateOf(r.get("web")); state == fleet.StateReady {
		t.Errorf("it is %s", state)
	}
	run.stop()
	run = r.start()
	r.check(r.kube.Delete(t.Context(), r.get("web")))
	r.eventually("the new release goes", func() error {
		if all := r.listed(other); len(all) > 0 || r.uid(other, "web") != "" {
			return fmt.Errorf("helm list shows %v", all)
		}
		return nil
	})
	r.edit("held", `{"metadata":{"finalizers":null}}`)
	r.untilRemoved(run, "web")
	if left := r.listed(r.target); len(left) > 0 {
		t.Errorf("helm list shows %v where it was", left)
	}
}

func TestAMemberThatLeavesInTheMiddleOfAMoveIsEmptied(t *testing.T) {
	r := newRig(t)
	run := r.start()
	other := r.namespace("other-")
	held := file("held.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: held\n  finalizers: [example.com/hold]\n")
	r.deploy("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"), held)
	r.place("web", fleet.BundleDeploymentOptions{DefaultNamespace: other}, configMap("web", "one"))
	r.until("web", fleet.StateErrApplied, "is not removed yet")
	run.stop()
	emptied := r.empty()
	r.eventually("it waits for the release before", func() error { return emptied.says("example.com/hold") })
	r.edit("held", `{"metadata":{"finalizers":null}}`)
	r.eventually("it is over", emptied.over)
	if here, there := r.listed(r.target), r.listed(other); len(here)+len(there) > 0 || r.uid(other, "web") != "" {
		t.Errorf("helm list shows %v and %v", here, there)
	}
}
