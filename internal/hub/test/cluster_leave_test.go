package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/agent"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// elsewhere is a Cluster on a control plane of its own, whose agent starts the
// program that delivers.
type elsewhere struct {
	fixture
	// on is that control plane, agent runs there.
	on    fixture
	agent *member
	name  string
	// target is the namespace of its release, once there is one.
	target string
}

func (f fixture) elsewhere(clientID string) *elsewhere {
	f.t.Helper()
	cluster := testkube.Start(f.t, "delivered")
	cluster.ServeFleet(f.t)
	var workspace corev1.Namespace
	f.check(f.get(&workspace, "", f.workspace))
	f.change(&workspace, func() { metav1.SetMetaDataLabel(&workspace.ObjectMeta, "muster/placement", "true") })
	f.t.Cleanup(func() { // placements of later tests on this control plane would pick the Cluster
		optOut := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"muster/placement":null}}}`))
		_ = f.Patch(context.Background(), &workspace, optOut) // the control plane may be gone
	})
	_, values := f.token("new-token", "")
	e := &elsewhere{
		fixture: f, on: fixture{Client: cluster.Client(f.t), t: f.t, cluster: cluster},
		agent: f.install(values, map[string]any{"clientID": clientID}), name: naming.Cluster(clientID),
	}
	// The member's cluster runs no pods, so the agent could not replace itself, and its Cluster would
	// not be ready.
	f.check(f.Create(context.Background(), &fleet.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: e.name, Labels: map[string]string{fleet.LabelNonManagedAgent: "true"}},
		Spec:       fleet.ClusterSpec{ClientID: clientID},
	}))
	namespace := e.on.copyOf(e.agent)
	e.agent.options = []func(*agent.Options){func(o *agent.Options) {
		o.Member, o.Namespace = cluster.Config, namespace
		delivers(f.t, cluster)(o)
	}}
	e.agent.agentNamespace = namespace
	e.agent.start()
	f.untilReady(e.name, "Ready")
	return e
}

func (e *elsewhere) record() *fleet.Cluster {
	return &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: e.workspace, Name: e.name}}
}

func (e *elsewhere) annotate(policy string) {
	e.t.Helper()
	e.check(e.Patch(context.Background(), e.record(), client.RawPatch("application/merge-patch+json",
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, clusterv1beta1.AnnotationLeavePolicy, policy))))
}

const everywhere = `targets: [{clusterSelector: {}}]`

// release delivers a ConfigMap of a Bundle, which is named as the workspace, and
// returns its namespace.
func (e *elsewhere) release() string {
	e.t.Helper()
	e.target = e.on.namespace("target-")
	e.bundle("app", "defaultNamespace: "+e.target+configMap+everywhere)
	e.eventually("the Bundle is delivered", func() error { return e.on.get(&corev1.ConfigMap{}, e.target, e.workspace) })
	e.untilBundle("app", fleet.ConditionReady, corev1.ConditionTrue)
	return e.target
}

// placed places a namespace of the hub and returns its name.
func (e *elsewhere) placed() string {
	e.t.Helper()
	shop := e.shop()
	e.crp("resourceSelectors: [{group: '', version: v1, kind: Namespace, name: " + shop +
		"}]\npolicy: {placementType: PickFixed, clusterNames: [$TEST/" + e.name + "]}")
	e.eventually("the member has it", func() error { return e.on.get(&corev1.ConfigMap{}, shop, "settings") })
	return shop
}

// releases are the names of the Secrets in which Helm keeps them.
func (e *elsewhere) releases() []string {
	e.t.Helper()
	var list corev1.SecretList
	e.check(e.on.List(context.Background(), &list, client.InNamespace(e.target), client.MatchingLabels{"owner": "helm"}))
	var names []string
	for _, secret := range list.Items {
		names = append(names, secret.Name)
	}
	return names
}

func (e *elsewhere) untilGone() {
	e.t.Helper()
	e.eventually("the Cluster and its namespace are gone", func() error {
		if err := e.get(e.record(), e.workspace, e.name); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading the Cluster: %v", err)
		}
		if err := e.get(&corev1.Namespace{}, "", naming.MemberNamespace(e.workspace, e.name)); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading the namespace: %v", err)
		}
		return nil
	})
}

func (e *elsewhere) hold(namespace, name, finalizers string) {
	e.t.Helper()
	e.check(e.on.Patch(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}},
		client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":`+finalizers+`}}`))))
}

// saysLeaving is nil if the Cluster says that it leaves, and all of the texts.
func (f fixture) saysLeaving(name string, texts ...string) error {
	if err := f.reason(name, "Leaving"); err != nil {
		return err
	}
	var cluster fleet.Cluster
	f.check(f.get(&cluster, f.workspace, name))
	message := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionReady).Message
	for _, text := range texts {
		if !strings.Contains(message, text) {
			return fmt.Errorf("it says %q", message)
		}
	}
	return nil
}

func TestAClusterThatLeavesWithPolicyDeleteIsEmptiedFirstAndNamesWhatBlocksIt(t *testing.T) {
	f := newAlone(t, "")
	e := f.elsewhere("emptied")
	target, shop := e.release(), e.placed()
	e.annotate("Delete")
	e.hold(target, e.workspace, `["example.com/hold"]`)
	e.hold(shop, "settings", `["example.com/other"]`)
	f.check(f.Delete(context.Background(), e.record()))
	f.eventually("the record says what blocks", func() error {
		return f.saysLeaving(e.name, "left", "ConfigMap "+target+"/"+e.workspace+" waits for finalizer example.com/hold", "example.com/other",
			"at most until")
	})
	e.agent.stop()
	f.restartHub()
	e.agent.start()
	e.hold(target, e.workspace, "null")
	f.eventually("it says what is left", func() error {
		if err := f.saysLeaving(e.name, "example.com/hold"); err == nil {
			return fmt.Errorf("it still names the first")
		}
		return f.saysLeaving(e.name, "example.com/other")
	})
	e.hold(shop, "settings", "null")
	e.untilGone()
	if left := e.releases(); len(left) > 0 {
		t.Errorf("the releases %v are left", left)
	}
	for namespace, name := range map[string]string{target: e.workspace, shop: "settings"} {
		if err := e.on.get(&corev1.ConfigMap{}, namespace, name); !apierrors.IsNotFound(err) {
			t.Errorf("reading ConfigMap %s/%s: %v", namespace, name, err)
		}
	}
	e.agent.untilState(agent.Left, "this cluster has left the fleet")
}

func TestAClusterThatLeavesWithPolicyDeleteGoesAfterWhatWasDelivered(t *testing.T) {
	f := newFixture(t)
	e := f.elsewhere("soon")
	target := e.release()
	e.annotate("Delete")
	f.check(f.Delete(context.Background(), e.record()))
	f.eventually("the record is gone", func() error { return gone(f.get(e.record(), f.workspace, e.name)) })
	if err := e.on.get(&corev1.ConfigMap{}, target, e.workspace); !apierrors.IsNotFound(err) {
		t.Errorf("the record went before what was delivered: %v", err)
	}
	e.untilGone()
}

// The agent of a Cluster is not asked unless its record says so: its access ends, and it must not
// take that for a reason to remove anything.
func TestAClusterThatIsDeletedKeepsWhatWasDelivered(t *testing.T) {
	f := newFixture(t)
	e := f.elsewhere("kept")
	target, shop := e.release(), e.placed()
	e.annotate("Keep")
	f.eventually("it says what is wrong with the annotation", func() error {
		var cluster fleet.Cluster
		if err := f.get(&cluster, f.workspace, e.name); err != nil {
			return err
		}
		said := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionSupported)
		if said == nil || said.Status != corev1.ConditionFalse || !strings.Contains(said.Message, `"Keep": want Delete or Orphan`) {
			return fmt.Errorf("it says %+v", said)
		}
		return nil
	})
	before := map[string]*corev1.ConfigMap{target + "/" + e.workspace: {}, shop + "/settings": {}}
	for key, object := range before {
		namespace, name, _ := strings.Cut(key, "/")
		f.check(e.on.get(object, namespace, name))
	}
	f.check(f.Delete(context.Background(), e.record()))
	e.untilGone()
	for key, object := range before {
		namespace, name, _ := strings.Cut(key, "/")
		uid := object.UID
		f.check(e.on.get(object, namespace, name))
		if object.UID != uid || object.DeletionTimestamp != nil {
			t.Errorf("%s is %+v", key, object.ObjectMeta)
		}
	}
	if len(e.releases()) == 0 {
		t.Error("the release is gone")
	}
}

func TestARancherFleetAgentCannotBeAskedToRemoveAnything(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	a := f.legacyJoin(values, "legacy-leaves")
	name := a.answer["clusterName"]
	f.check(a.beat(time.Now()))
	f.untilReady(name, "Ready")
	f.bundle("app", "defaultNamespace: default"+configMap+everywhere)
	f.eventually("the Bundle is delivered to it", func() error {
		return f.get(&fleet.BundleDeployment{}, a.answer["deploymentNamespace"], "app")
	})
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: name, Annotations: map[string]string{}}}
	f.check(f.Patch(context.Background(), cluster,
		client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"muster/leave-policy":"Delete"}}}`))))
	f.check(f.Delete(context.Background(), cluster))
	f.eventually("it goes at once", func() error { return gone(f.get(&fleet.Cluster{}, f.workspace, name)) })
	f.leftBehind(cluster, a.answer["deploymentNamespace"], "is Rancher Fleet's, which cannot remove its deliveries",
		"BundleDeployment app")
}

// leftBehind checks what is reported and kept of a Cluster that left without its agent's answer.
func (f fixture) leftBehind(cluster *fleet.Cluster, memberNamespace, why, placed string) {
	f.t.Helper()
	var left corev1.ConfigMap
	f.check(f.get(&left, naming.SystemNamespace, "left-"+memberNamespace))
	if left.Data["uid"] != string(cluster.UID) || !strings.Contains(left.Data["message"], why) || left.Data["placed"] != placed {
		f.t.Errorf("what was left behind is recorded as %v", left.Data)
	}
	f.eventually("an event says so", func() error {
		var list eventsv1.EventList
		if err := f.List(context.Background(), &list, client.InNamespace(f.workspace)); err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.Reason == "ForcedLeave" && e.Regarding.UID == cluster.UID && strings.Contains(e.Note, why) {
				return nil
			}
		}
		return fmt.Errorf("%d other events", len(list.Items))
	})
}

func TestAClusterWhoseAgentIsAwayIsMadeToLeaveWhenTheWaitIsOver(t *testing.T) {
	f := newAlone(t, `{"forceDeleteWaitTime":"30s"}`)
	_, values := f.token("new-token", "")
	m := f.join(values, map[string]any{"clientID": "away"})
	name := naming.Cluster("away")
	cluster := f.untilReady(name, "Ready")
	m.stop()
	f.check(f.Patch(context.Background(), &cluster,
		client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"muster/leave-policy":"Delete"}}}`))))
	f.check(f.Delete(context.Background(), &cluster))
	f.eventually("it is waited for", func() error { return f.saysLeaving(name, "waiting for the member agent to answer, at most until") })
	f.eventually("the Cluster is gone", func() error { return gone(f.get(&fleet.Cluster{}, f.workspace, name)) })
	f.leftBehind(&cluster, naming.MemberNamespace(f.workspace, name), "did not answer; its access was revoked", "")
	never := f.place("never", nil)
	f.eventually("it has a policy", func() error {
		return f.Patch(context.Background(), &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "never"}},
			client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"muster/leave-policy":"Delete"}}}`)))
	})
	begun := time.Now()
	f.check(f.Delete(context.Background(), &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: never.name}}))
	f.eventually("one that never joined goes at once", func() error { return gone(f.get(&fleet.Cluster{}, f.workspace, never.name)) })
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}

// copyOf copies what an agent registers with into a namespace of another cluster.
func (f fixture) copyOf(m *member) string {
	f.t.Helper()
	namespace := f.namespace("agent-")
	var secret corev1.Secret
	var settings corev1.ConfigMap
	f.check(m.get(&secret, m.agentNamespace, naming.AgentBootstrapSecret))
	f.check(m.get(&settings, m.agentNamespace, naming.AgentConfigMap))
	for _, o := range []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secret.Name}, Data: secret.Data},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: settings.Name}, Data: settings.Data},
	} {
		f.check(f.Create(context.Background(), o))
	}
	return namespace
}

// With its namespace a Cluster loses its identity, too, and has to register again; what is placed
// on it stays meanwhile.
func TestAClustersNamespaceDeletedByMistakeGoesAndTakesNothingOffTheCluster(t *testing.T) {
	f := newFixture(t)
	e := f.elsewhere("mistake")
	shop := e.placed()
	settings := &corev1.ConfigMap{}
	f.check(e.on.get(settings, shop, "settings"))
	name := naming.MemberNamespace(f.workspace, e.name)
	var namespace corev1.Namespace
	f.check(f.get(&namespace, "", name))
	f.check(f.Delete(context.Background(), namespace.DeepCopy()))
	f.eventually("the namespace is made anew", func() error {
		var again corev1.Namespace
		if err := f.get(&again, "", name); err != nil {
			return err
		}
		if again.UID == namespace.UID {
			return fmt.Errorf("it is still there: %v", again.Status.Conditions)
		}
		return nil
	})
	uid := settings.UID
	f.check(e.on.get(settings, shop, "settings"))
	if settings.UID != uid || settings.DeletionTimestamp != nil {
		t.Errorf("it was removed: %+v", settings.ObjectMeta)
	}
}
