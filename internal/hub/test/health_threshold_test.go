package hub_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
)

// reportHealth reports as an agent of KubeFleet does, with a number of nodes that tells the reports
// apart.
func (r *registered) reportHealth(healthy metav1.ConditionStatus, nodes int) {
	r.t.Helper()
	var report clusterv1beta1.InternalMemberCluster
	key := types.NamespacedName{Namespace: r.namespaceName(), Name: r.name}
	r.check(r.agent.Get(context.Background(), key, &report))
	own := clusterv1beta1.FindAgent(report.Status.AgentStatus, clusterv1beta1.MemberAgent)
	own.LastReceivedHeartbeat = metav1.NewTime(own.LastReceivedHeartbeat.Add(time.Second))
	meta.SetStatusCondition(&own.Conditions, metav1.Condition{Type: "Healthy", Status: healthy, Reason: "Probed"})
	report.Status.Properties = map[string]clusterv1beta1.PropertyValue{
		clusterv1beta1.PropertyNodeCount: {Value: strconv.Itoa(nodes), ObservationTime: metav1.Now()},
	}
	r.check(r.agent.Status().Update(context.Background(), &report))
}

func TestTheHealthOfAMemberClusterChangesAfterSeveralReports(t *testing.T) {
	f := newAlone(t, `{"healthCheck":{"failureThreshold":3,"successThreshold":2}}`)
	m := f.register("steady")
	m.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
	m.eventually("an agent of KubeFleet answers", func() error { return m.answer(metav1.ConditionTrue, "") })
	m.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy")
	const ok, bad = metav1.ConditionTrue, metav1.ConditionFalse
	for i, step := range []struct{ reported, shown metav1.ConditionStatus }{
		{bad, ok}, {bad, ok}, {ok, ok}, {bad, ok}, {bad, ok}, {bad, bad}, {ok, bad}, {bad, bad}, {ok, bad}, {ok, ok},
	} {
		nodes := 100 + i
		m.reportHealth(step.reported, nodes)
		f.eventually(fmt.Sprintf("report %d (Healthy %s) is shown", i, step.reported), func() error {
			mc := m.record()
			shown := meta.FindStatusCondition(mc.Status.Conditions, "Healthy")
			if got := mc.Status.Properties[clusterv1beta1.PropertyNodeCount].Value; got != strconv.Itoa(nodes) || shown.Status != step.shown {
				return fmt.Errorf("it shows %s nodes and %+v", got, shown)
			}
			return nil
		})
	}
}

func TestAWorkspaceSetsTheThresholdsOfTheHealthCheck(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	f.join(values, map[string]any{"clientID": "steady"})
	cluster := f.untilReady(naming.Cluster("steady"), "Ready")
	workspace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.workspace}}
	asked := func(want *clusterv1beta1.HealthCheck) {
		t.Helper()
		f.eventually(fmt.Sprintf("the agent is asked for %+v", want), func() error {
			var report clusterv1beta1.InternalMemberCluster
			if err := f.get(&report, cluster.Status.Namespace, cluster.Name); err != nil {
				return err
			}
			if got := report.Spec.HealthCheck; (got == nil) != (want == nil) || got != nil && *got != *want {
				return fmt.Errorf("it is asked for %+v", got)
			}
			return nil
		})
	}
	f.check(annotate(f, workspace, fleet.AnnotationFailureThreshold, `"3"`))
	asked(&clusterv1beta1.HealthCheck{FailureThreshold: 3, SuccessThreshold: 1})
	for _, wrong := range []string{`"0"`, `"61"`, `"three"`} {
		if err := annotate(f, workspace, fleet.AnnotationSuccessThreshold, wrong); !apierrors.IsInvalid(err) {
			t.Errorf("a threshold of %s: %v", wrong, err)
		}
	}
	f.check(annotate(f, workspace, fleet.AnnotationFailureThreshold, "null"))
	asked(nil)
}
