package hub_test

import (
	"context"
	"fmt"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/naming"
)

const recordUID = "muster/record-uid"

// madeUp is a namespace that looks like a Cluster's member namespace.
func (f fixture) madeUp(cluster, uid string) *corev1.Namespace {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: naming.MemberNamespace(f.workspace, cluster), Labels: map[string]string{fleet.LabelManaged: "true"},
		Annotations: map[string]string{fleet.AnnotationClusterNamespace: f.workspace, fleet.LabelCluster: cluster},
	}}
	if uid != "" {
		namespace.Annotations[recordUID] = uid
	}
	return namespace
}

// TestANamespaceThatLooksLikeAMembersIsNotUsed: a user who may create namespaces creates a member
// namespace before its Cluster is there, with the chart's policies and, as an administrator, as on
// a hub cluster that has none.
func TestANamespaceThatLooksLikeAMembersIsNotUsed(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	name := naming.Cluster("victim")
	creator := f.creator()
	const says = "only the hub"
	f.forbids("a member namespace", says, func() error { return creator.Create(ctx, f.madeUp(name, "")) })
	plain := f.namespace("plain-")
	f.forbids("the hub's label on a namespace", says, func() error {
		return merge(creator, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: plain}},
			`{"metadata":{"labels":{"fleet.cattle.io/managed":"true"}}}`)
	})

	f.check(f.Create(ctx, f.madeUp(name, "")))
	_, values := f.token("new-token", "")
	r := f.mustAsk(values, fleet.ClusterRegistrationSpec{ClientID: "victim", AnswerKey: answerKey(t).Public()})
	f.untilReady(name, "NamespaceTaken")
	f.untilState(&r, fleet.RegistrationWaiting, "NamespaceTaken")
	if err := gone(f.get(&corev1.ServiceAccount{}, naming.MemberNamespace(f.workspace, name), naming.MemberServiceAccount)); err != nil {
		t.Errorf("an identity is made in it: %v", err)
	}
}

// TestAMemberNamespaceOfAnEarlierVersionIsTakenOver restarts a hub whose members' namespaces have
// no UID of their Cluster or MemberCluster yet.
func TestAMemberNamespaceOfAnEarlierVersionIsTakenOver(t *testing.T) {
	f := newAlone(t, "")
	_, values := f.token("new-token", "")
	m := f.join(values, map[string]any{"clientID": "early"})
	cluster := f.untilReady(naming.Cluster("early"), "Ready")
	_, namespace := m.credential()
	r := f.joined("early")
	f.hub.Kill()
	uids := map[string]string{namespace: string(cluster.UID), r.namespaceName(): string(r.record().UID)}
	for name := range uids {
		f.check(merge(f, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, `{"metadata":{"annotations":{"`+recordUID+`":null}}}`))
	}
	f.hub.Start()
	for name, uid := range uids {
		f.eventually("the hub takes over namespace "+name, func() error {
			var is corev1.Namespace
			if err := f.get(&is, "", name); err != nil {
				return err
			}
			if is.Annotations[recordUID] != uid || is.DeletionTimestamp != nil {
				return fmt.Errorf("it has %v", is.Annotations)
			}
			return nil
		})
	}
	f.eventually("the Cluster is Ready", func() error { return f.reason(cluster.Name, "Ready") })
	r.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
}

// TestLeasesOfATenantAreNoMembers plays a tenant who creates Leases with the hub's label. The hub
// requests heartbeats from members as often as before.
func TestLeasesOfATenantAreNoMembers(t *testing.T) {
	f := newAlone(t, "")
	ctx := context.Background()
	creator := f.creator()
	lease := func(name string) *coordinationv1.Lease {
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: name, Labels: map[string]string{fleet.LabelManaged: "true"}},
		}
	}
	for i := range 400 {
		f.check(creator.Create(ctx, lease(fmt.Sprintf("l%d", i))))
	}
	f.check(creator.Create(ctx, lease(naming.HeartbeatLease)))
	f.restartHub()
	_, values := f.token("new-token", "")
	m := f.join(values, map[string]any{"clientID": "web"})
	f.untilReady(naming.Cluster("web"), "Ready")
	f.check(beat(creator, credential.Answer{DeploymentNamespace: f.workspace}))
	bearer, namespace := m.credential()
	f.check(beat(f.as(bearer), credential.Answer{DeploymentNamespace: namespace}))
	var report clusterv1beta1.InternalMemberCluster
	f.check(f.get(&report, namespace, naming.Cluster("web")))
	if report.Spec.HeartbeatPeriodSeconds != 10 {
		t.Errorf("the member is asked to beat every %d s", report.Spec.HeartbeatPeriodSeconds)
	}
}
