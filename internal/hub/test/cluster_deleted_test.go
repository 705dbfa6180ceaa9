package hub_test

import (
	"context"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
)

// TestAHubKilledAfterAnAgentHasAnsweredReportsNoForcedLeave keeps the hub by an admission policy
// from the step after the one that ends the agent's access, and kills it there.
func TestAHubKilledAfterAnAgentHasAnsweredReportsNoForcedLeave(t *testing.T) {
	f := newAlone(t, "")
	_, values := f.token("new-token", "")
	f.join(values, map[string]any{"clientID": "answers"})
	cluster := f.untilReady(naming.Cluster("answers"), "Ready")
	namespace := naming.MemberNamespace(f.workspace, cluster.Name)
	permit := f.forbid(admissionv1.Delete, "", "namespaces", "false", func() error {
		return f.Delete(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, client.DryRunAll)
	}, namespace)
	f.check(merge(f, &cluster, `{"metadata":{"annotations":{"muster/leave-policy":"Delete"}}}`))
	f.check(f.Delete(context.Background(), &cluster))
	f.eventually("the access of the agent has ended", func() error {
		return gone(f.get(&corev1.ServiceAccount{}, namespace, naming.MemberServiceAccount))
	})
	f.restartHub()
	permit()
	f.eventually("the Cluster is gone", func() error { return gone(f.get(&fleet.Cluster{}, f.workspace, cluster.Name)) })
	var left corev1.ConfigMap
	if err := gone(f.get(&left, naming.SystemNamespace, "left-"+namespace)); err != nil {
		t.Errorf("it is said to have been forced: %v", left.Data)
	}
	var events eventsv1.EventList
	f.check(f.List(context.Background(), &events, client.InNamespace(f.workspace)))
	for _, e := range events.Items {
		if e.Reason == "ForcedLeave" {
			t.Errorf("an event says: %s", e.Note)
		}
	}
}

// TestADeletedClusterLeavesAlsoWhenItIsLabelledForAnotherManager: only this hub knows what it
// made for the Cluster.
func TestADeletedClusterLeavesAlsoWhenItIsLabelledForAnotherManager(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	f.nativeJoin(values, "labelled", func(*fleet.ClusterRegistration) {})
	cluster := f.untilReady(naming.Cluster("labelled"), "Ready")
	f.check(merge(f, &cluster, `{"metadata":{"labels":{"fleet.cattle.io/cluster-management":"other"}}}`))
	f.check(f.Delete(context.Background(), &cluster))
	f.eventually("the Cluster is gone", func() error { return gone(f.get(&fleet.Cluster{}, f.workspace, cluster.Name)) })
	f.eventually("and its namespace", func() error {
		return gone(f.get(&corev1.Namespace{}, "", naming.MemberNamespace(f.workspace, cluster.Name)))
	})
}
