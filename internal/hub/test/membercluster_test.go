package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// registered is a MemberCluster with the identity that the how-to makes.
type registered struct {
	fixture
	name  string
	agent client.Client
}

// register does what the how-to says: an account, then a MemberCluster.
func (f fixture) register(prefix string, change ...func(*clusterv1beta1.MemberCluster)) *registered {
	f.t.Helper()
	r := &registered{fixture: f, name: prefix + "-" + strings.TrimPrefix(f.workspace, "clusters-")}
	r.account(r.name)
	mc := &clusterv1beta1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: r.name}, Spec: clusterv1beta1.MemberClusterSpec{
			Identity: identityOf(r.name), HeartbeatPeriodSeconds: 60,
		},
	}
	for _, set := range change {
		set(mc)
	}
	f.check(f.Create(context.Background(), mc))
	f.t.Cleanup(func() { _ = f.Delete(context.Background(), mc) }) // most tests delete it themselves
	r.agent = r.as(r.bearer(r.name))
	return r
}

func identityOf(account string) rbacv1.Subject {
	return rbacv1.Subject{Kind: "ServiceAccount", Name: account, Namespace: naming.MemberSystemNamespace}
}

func (r *registered) account(name string) {
	r.t.Helper()
	r.eventually("namespace fleet-system is there", func() error { return r.get(&corev1.Namespace{}, "", naming.MemberSystemNamespace) })
	r.check(r.Create(context.Background(), &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: naming.MemberSystemNamespace, Name: name},
	}))
}

func (r *registered) bearer(account string) string {
	r.t.Helper()
	bearer, err := kube.RequestToken(context.Background(), r.SubResource("token"),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: naming.MemberSystemNamespace, Name: account}}, time.Hour)
	r.check(err)
	return bearer
}

func (r *registered) namespaceName() string { return naming.MemberClusterNamespace(r.name) }

func (r *registered) record() clusterv1beta1.MemberCluster {
	r.t.Helper()
	var mc clusterv1beta1.MemberCluster
	r.check(r.get(&mc, "", r.name))
	return mc
}

// until waits until a condition of the record has a status and a reason.
func (r *registered) until(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	r.t.Helper()
	var found metav1.Condition
	r.eventually(fmt.Sprintf("%s is %s for %s", kind, status, reason), func() error {
		var mc clusterv1beta1.MemberCluster
		if err := r.get(&mc, "", r.name); err != nil {
			return err
		}
		condition := meta.FindStatusCondition(mc.Status.Conditions, kind)
		if condition == nil || condition.Status != status || condition.Reason != reason {
			return fmt.Errorf("it is %+v", condition)
		}
		found = *condition
		return nil
	})
	return found
}

func (r *registered) untilGone() {
	r.t.Helper()
	r.eventually("record and namespace are gone", func() error {
		for o, name := range map[client.Object]string{&clusterv1beta1.MemberCluster{}: r.name, &corev1.Namespace{}: r.namespaceName()} {
			if err := r.get(o, "", name); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%T: %v", o, err)
			}
		}
		return nil
	})
}

// answer plays a KubeFleet member agent: it reads its report and updates the whole status with
// an entry of its own.
func (r *registered) answer(joined metav1.ConditionStatus, agentVersion string) error {
	var report clusterv1beta1.InternalMemberCluster
	if err := r.agent.Get(context.Background(), types.NamespacedName{Namespace: r.namespaceName(), Name: r.name}, &report); err != nil {
		return err
	}
	now := metav1.NewTime(time.Now().Add(-time.Hour)) // a member's clock may be wrong
	own := clusterv1beta1.FindAgent(report.Status.AgentStatus, clusterv1beta1.MemberAgent)
	if own == nil {
		report.Status.AgentStatus = append(report.Status.AgentStatus, clusterv1beta1.AgentStatus{})
		own = &report.Status.AgentStatus[len(report.Status.AgentStatus)-1]
	} else {
		now = metav1.NewTime(own.LastReceivedHeartbeat.Add(time.Second))
	}
	reason := map[metav1.ConditionStatus]string{metav1.ConditionTrue: "InternalMemberClusterJoined",
		metav1.ConditionFalse: "InternalMemberClusterLeft"}[joined]
	report.Status.AgentVersion = agentVersion
	report.Status.Properties = map[string]clusterv1beta1.PropertyValue{clusterv1beta1.PropertyNodeCount: {Value: "3", ObservationTime: now}}
	cpu := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8")}
	report.Status.ResourceUsage = clusterv1beta1.ResourceUsage{Capacity: cpu, Allocatable: cpu, Available: cpu, ObservationTime: now}
	*own = clusterv1beta1.AgentStatus{
		Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: now,
		Conditions: []metav1.Condition{
			{Type: "Joined", Status: joined, Reason: reason, LastTransitionTime: now},
			{Type: "Healthy", Status: metav1.ConditionTrue, Reason: "InternalMemberClusterHealthy", LastTransitionTime: now},
		},
	}
	return r.agent.Status().Update(context.Background(), &report)
}

func TestMemberClusterBecomesReadyJoinedAndHealthy(t *testing.T) {
	f := newFixture(t)
	m := f.register("member")
	m.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
	m.until("Joined", metav1.ConditionUnknown, "MemberClusterJoinStateUnknown")
	m.eventually("the agent answers", func() error { return m.answer(metav1.ConditionTrue, "") })
	m.until("Joined", metav1.ConditionTrue, "MemberClusterJoined")
	m.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy")
	mc := m.record()
	agent := mc.Status.AgentStatus[0]
	if off := time.Since(agent.LastReceivedHeartbeat.Time).Abs(); off > time.Minute {
		t.Errorf("the last heartbeat is shown as %s, which is the member's clock and not the hub's", agent.LastReceivedHeartbeat)
	}
	if mc.Status.Properties[clusterv1beta1.PropertyNodeCount].Value != "3" || mc.Status.ResourceUsage.Available.Cpu().String() != "8" ||
		len(agent.Conditions) != 2 {
		t.Errorf("status is %+v", mc.Status)
	}
	if mc.Labels[clusterv1beta1.LabelMemberName] != m.name {
		t.Errorf("labels are %v", mc.Labels)
	}
	var namespace corev1.Namespace
	m.check(m.get(&namespace, "", m.namespaceName()))
	if owner := metav1.GetControllerOf(&namespace); owner == nil || owner.UID != mc.UID ||
		namespace.Labels[clusterv1beta1.LabelFleetResource] != "true" {
		t.Errorf("the namespace is %+v", namespace.ObjectMeta)
	}
}

func TestAnUpgradeOfKubernetesOfAMemberClusterIsAnEvent(t *testing.T) {
	f := newFixture(t)
	m := f.register("upgraded")
	m.until(clusterv1beta1.ConditionReadyToJoin, metav1.ConditionTrue, "MemberClusterReadyToJoin")
	f.eventually("it has joined", func() error { return m.answer(metav1.ConditionTrue, "") })
	report := &clusterv1beta1.InternalMemberCluster{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespaceName(), Name: m.name}}
	for _, version := range []string{"v1.30.0", "v1.31.0"} {
		patch := `{"status":{"properties":{"k8s.io/k8s-version":{"value":"` + version + `","observationTime":"2026-11-24T10:00:00Z"}}}}`
		f.check(f.Status().Patch(context.Background(), report, client.RawPatch(types.MergePatchType, []byte(patch))))
		f.eventually("the record shows it", func() error {
			if is := m.record().Status.Properties["k8s.io/k8s-version"].Value; is != version {
				return fmt.Errorf("it shows %s", is)
			}
			return nil
		})
	}
	f.workspace = metav1.NamespaceDefault // where Events about what has no namespace are
	f.eventually("an event tells of it", func() error { return f.event("KubernetesVersionChanged", m.name, ", before v1.30.0") })
}

func TestLabellingThroughTheOtherVersionKeepsEveryField(t *testing.T) {
	f := newFixture(t)
	m := f.register("label")
	m.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
	mc := m.record()
	f.change(&mc, func() {
		mc.Spec.DeleteOptions = &clusterv1beta1.DeleteOptions{ValidationMode: "Skip"}
		mc.Spec.Taints = []clusterv1beta1.Taint{{Key: "a", Value: "b", Effect: "NoSchedule"}}
	})
	v1 := &unstructured.Unstructured{}
	v1.SetAPIVersion("cluster.kubernetes-fleet.io/v1")
	v1.SetKind("MemberCluster")
	m.eventually("the label is set through v1", func() error {
		if err := m.get(v1, "", m.name); err != nil {
			return err
		}
		v1.SetLabels(map[string]string{"env": "prod", clusterv1beta1.LabelMemberName: m.name})
		return m.Update(context.Background(), v1)
	})
	after := m.record()
	if after.Spec.DeleteOptions == nil || after.Spec.DeleteOptions.ValidationMode != "Skip" || len(after.Spec.Taints) != 1 ||
		after.Labels["env"] != "prod" {
		t.Errorf("after labelling: %+v", after)
	}
}

func TestMemberClustersThatCouldNeverJoinAreRefused(t *testing.T) {
	f := newFixture(t)
	bad := map[string]*clusterv1beta1.MemberCluster{
		"at most 50 characters":   {ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("x", 51)}},
		"only lower case letters": {ObjectMeta: metav1.ObjectMeta{Name: "a.b"}},
		"should be less than or equal to 600": {
			ObjectMeta: metav1.ObjectMeta{Name: "period"}, Spec: clusterv1beta1.MemberClusterSpec{HeartbeatPeriodSeconds: 601},
		},
		"two taints have the same key": {
			ObjectMeta: metav1.ObjectMeta{Name: "taints"}, Spec: clusterv1beta1.MemberClusterSpec{
				Taints: []clusterv1beta1.Taint{{Key: "a", Effect: "NoSchedule"}, {Key: "a", Effect: "NoSchedule"}},
			},
		},
		"spec.taints[0].key in body should match": {
			ObjectMeta: metav1.ObjectMeta{Name: "taint-key"}, Spec: clusterv1beta1.MemberClusterSpec{
				Taints: []clusterv1beta1.Taint{{Key: "a b", Effect: "NoSchedule"}},
			},
		},
		`spec.taints[0].effect: Unsupported value`: {
			ObjectMeta: metav1.ObjectMeta{Name: "taint-effect"}, Spec: clusterv1beta1.MemberClusterSpec{
				Taints: []clusterv1beta1.Taint{{Key: "a", Effect: "NoExecute"}},
			},
		},
	}
	for says, mc := range bad {
		mc.Spec.Identity = identityOf("x")
		if err := f.Create(context.Background(), mc); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want it refused with %q", mc.Name, err, says)
		}
	}
}

func TestIdentityThatIsNotUsableIsNamed(t *testing.T) {
	f := newFixture(t)
	m := f.register("identity")
	m.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
	change := func(identity rbacv1.Subject) {
		m.eventually("the identity is changed", func() error {
			mc := m.record()
			mc.Spec.Identity = identity
			return m.Update(context.Background(), &mc)
		})
	}
	change(rbacv1.Subject{Kind: "Nonsense", Name: "x"})
	m.until("ReadyToJoin", metav1.ConditionFalse, "IdentityInvalid")
	m.eventually("the identity before has lost its access", func() error {
		if err := m.answer(metav1.ConditionTrue, ""); !apierrors.IsForbidden(err) {
			return fmt.Errorf("answering: %v", err)
		}
		return nil
	})
	missing := identityOf(m.name + "-other")
	change(missing)
	if c := m.until("ReadyToJoin", metav1.ConditionFalse, "IdentityMissing"); !strings.Contains(c.Message,
		"kubectl create serviceaccount "+missing.Name) {
		t.Errorf("the message is %q", c.Message)
	}
	m.account(missing.Name)
	m.agent = m.as(m.bearer(missing.Name))
	m.eventually("the new identity works", func() error { return m.answer(metav1.ConditionTrue, "") })
	m.until("Joined", metav1.ConditionTrue, "MemberClusterJoined")
}

func TestReportEditedByHandIsHealedAndRightsNarrowToTheNativeAgent(t *testing.T) {
	f := newFixture(t)
	m := f.register("heal")
	m.eventually("the agent answers", func() error { return m.answer(metav1.ConditionTrue, "v1") })
	m.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy")
	var report clusterv1beta1.InternalMemberCluster
	m.check(m.get(&report, m.namespaceName(), m.name))
	f.change(&report, func() {
		report.Spec = clusterv1beta1.InternalMemberClusterSpec{State: "Bogus", HeartbeatPeriodSeconds: 600}
	})
	m.eventually("the report's spec is healed", func() error {
		if err := m.get(&report, m.namespaceName(), m.name); err != nil {
			return err
		}
		if report.Spec.State != clusterv1beta1.ClusterStateJoin || report.Spec.HeartbeatPeriodSeconds != 60 {
			return fmt.Errorf("it is %+v", report.Spec)
		}
		return nil
	})
	m.eventually("a native agent may not change its own spec", func() error {
		if err := m.agent.Update(context.Background(), &report); !apierrors.IsForbidden(err) {
			return fmt.Errorf("updating: %v", err)
		}
		return nil
	})
	for _, o := range []client.Object{
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespaceName(), Name: naming.MemberClusterRoleBinding(m.name)}},
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespaceName(), Name: naming.MemberClusterRole(m.name)}},
		&clusterv1beta1.InternalMemberCluster{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespaceName(), Name: m.name}},
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespaceName(), Name: naming.HeartbeatLease}},
	} {
		m.check(m.Delete(context.Background(), o.DeepCopyObject().(client.Object)))
		m.eventually(fmt.Sprintf("%T is back", o), func() error { return m.get(o, o.GetNamespace(), o.GetName()) })
	}
}

func TestSilentMemberClusterIsShownAsLost(t *testing.T) {
	f := newFixture(t)
	m := f.register("silent")
	m.eventually("the agent answers", func() error { return m.answer(metav1.ConditionTrue, "") })
	m.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy")
	m.eventually("the period is short", func() error {
		mc := m.record()
		mc.Spec.HeartbeatPeriodSeconds = 1 // lost after the least, 30 s
		return m.Update(context.Background(), &mc)
	})
	lost := m.until("Healthy", metav1.ConditionFalse, "AgentLost")
	if !strings.Contains(lost.Message, "no heartbeat of the member agent since 20") {
		t.Errorf("the message is %q", lost.Message)
	}
	m.check(m.answer(metav1.ConditionTrue, ""))
	m.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy")
}

func TestMemberLeavesWhenItsAgentHasAnsweredAndMayJoinAgainUnderItsName(t *testing.T) {
	f := newFixture(t)
	m := f.register("leave")
	m.eventually("the agent answers", func() error { return m.answer(metav1.ConditionTrue, "") })
	m.until("Joined", metav1.ConditionTrue, "MemberClusterJoined")
	mc := m.record()
	m.check(m.Delete(context.Background(), &mc))
	if c := m.until("Joined", metav1.ConditionTrue, "Leaving"); !strings.Contains(c.Message, "waiting for the member agent to answer") {
		t.Errorf("the message is %q", c.Message)
	}
	var report clusterv1beta1.InternalMemberCluster
	m.eventually("the agent is asked to leave", func() error {
		if err := m.get(&report, m.namespaceName(), m.name); err != nil {
			return err
		}
		if report.Spec.State != clusterv1beta1.ClusterStateLeave {
			return fmt.Errorf("the state is %s", report.Spec.State)
		}
		return nil
	})
	m.check(m.answer(metav1.ConditionFalse, ""))
	m.untilGone()
	again := &clusterv1beta1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: m.name}, Spec: clusterv1beta1.MemberClusterSpec{Identity: identityOf(m.name)},
	}
	m.check(m.Create(context.Background(), again))
	m.eventually("the agent answers again", func() error { return m.answer(metav1.ConditionTrue, "") })
	m.until("Joined", metav1.ConditionTrue, "MemberClusterJoined")
}

func TestMemberThatNeverConnectedLeavesAtOnce(t *testing.T) {
	f := newFixture(t)
	m := f.register("never")
	m.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
	mc := m.record()
	m.check(m.Delete(context.Background(), &mc))
	m.untilGone()
}

func TestMemberNamespaceOfSomebodyElseIsNeverAdoptedByAMemberCluster(t *testing.T) {
	f := newFixture(t)
	name := "taken-" + strings.TrimPrefix(f.workspace, "clusters-")
	foreign := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: naming.MemberClusterNamespace(name)}}
	f.check(f.Create(context.Background(), foreign))
	m := f.register("taken")
	m.until("ReadyToJoin", metav1.ConditionFalse, "NamespaceTaken")
	mc := m.record()
	m.check(m.Delete(context.Background(), &mc))
	m.eventually("the record is gone and the namespace stays", func() error {
		if err := m.get(&mc, "", m.name); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading the record: %v", err)
		}
		return m.get(foreign, "", foreign.Name)
	})
	if foreign.DeletionTimestamp != nil {
		t.Error("the namespace was deleted with the record")
	}
}

// TestUnmodifiedKubeFleetAgentHasAllThatItNeedsAndNothingOfAnother goes through what an upstream
// member agent does on its hub.
func TestUnmodifiedKubeFleetAgentHasAllThatItNeedsAndNothingOfAnother(t *testing.T) {
	f := newFixture(t)
	m, other := f.register("legacy"), f.register("other")
	for _, r := range []*registered{m, other} {
		r.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
	}
	ctx, in := context.Background(), client.InNamespace(m.namespaceName())
	m.check(m.Create(ctx, &placement.Work{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespaceName(), Name: "crp-work"}}))
	var works placement.WorkList
	m.eventually("it lists its reports and works", func() error {
		if err := m.agent.List(ctx, &clusterv1beta1.InternalMemberClusterList{}, in); err != nil {
			return err
		}
		return m.agent.List(ctx, &works, in)
	})
	work := &works.Items[0]
	f.changeAs(m.agent, work, func() { work.Finalizers = []string{"kubernetes-fleet.io/work-cleanup"} })
	work.Status.Conditions = []metav1.Condition{{
		Type: "Applied", Status: metav1.ConditionTrue, Reason: "AllManifestsApplied", LastTransitionTime: metav1.Now(),
	}}
	m.check(m.agent.Status().Update(ctx, work))
	m.check(m.agent.Create(ctx, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.namespaceName(), Name: "joined"}, Reason: "InternalMemberClusterJoined",
		InvolvedObject: corev1.ObjectReference{Kind: "InternalMemberCluster", Namespace: m.namespaceName(), Name: m.name},
	}))
	m.check(m.answer(metav1.ConditionTrue, ""))
	m.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy")

	m.refused("it lists the works of another", m.agent.List(ctx, &placement.WorkList{}, client.InNamespace(other.namespaceName())))
	m.refused("it lists all works", m.agent.List(ctx, &placement.WorkList{}))
	m.refused("it makes a work", m.agent.Create(ctx, &placement.Work{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.namespaceName(), Name: "own"},
	}))
	m.refused("it reads its record", m.agent.Get(ctx, types.NamespacedName{Name: m.name}, &clusterv1beta1.MemberCluster{}))
	m.refused("it reads Secrets", m.agent.List(ctx, &corev1.SecretList{}, in))
	m.refused("it reads identities", m.agent.List(ctx, &corev1.SecretList{}, client.InNamespace(naming.MemberSystemNamespace)))

	mc := m.record()
	m.check(m.Delete(ctx, &mc))
	m.until("Joined", metav1.ConditionTrue, "Leaving")
	m.check(m.answer(metav1.ConditionFalse, ""))
	m.untilGone() // although the agent never took its finalizer off the work: upstream leaves that to the hub
}
