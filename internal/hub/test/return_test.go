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
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/agent"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// untilState waits until an agent is in a state whose reason says something.
func (m *member) untilState(want agent.State, says string) {
	m.t.Helper()
	m.eventually(fmt.Sprintf("the agent is %s", want), func() error {
		if state, reason, _ := m.agent.Status(); state != want || !strings.Contains(reason, says) {
			return fmt.Errorf("it is %s: %s", state, reason)
		}
		return nil
	})
}

func TestMemberWhoseAgentIsAwayIsMadeToLeaveAndJoinsAgainUnderItsName(t *testing.T) {
	f := newAlone(t, `{"forceDeleteWaitTime":"30s"}`)
	r := f.register("forced", every(10))
	m := r.serve(f)
	r.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy")
	m.stop()
	first := r.record()
	r.check(r.Delete(context.Background(), &first))
	if c := r.until("Joined", metav1.ConditionTrue, "Leaving"); !strings.Contains(c.Message,
		"waiting for the member agent to answer, at most until") {
		t.Errorf("the message is %q", c.Message)
	}
	r.untilGone()
	var left corev1.ConfigMap
	r.check(r.get(&left, naming.SystemNamespace, "left-"+r.name))
	if left.Data["uid"] != string(first.UID) || !strings.Contains(left.Data["message"], "did not answer; its access was revoked") {
		t.Errorf("what was left behind is recorded as %v", left.Data)
	}
	r.eventually("an event says so", func() error {
		var list eventsv1.EventList
		if err := r.List(context.Background(), &list); err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.Reason == "ForcedLeave" && e.Regarding.UID == first.UID && strings.Contains(e.Note, "did not answer") {
				return nil
			}
		}
		return fmt.Errorf("%d other events", len(list.Items))
	})

	m.start()
	m.untilState(agent.Trying, "knows no member "+r.name+" for this identity yet: apply a MemberCluster named "+r.name)
	m.stop()
	again := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: r.name}, Spec: first.Spec}
	r.check(r.Create(context.Background(), again))
	r.until("Joined", metav1.ConditionUnknown, "MemberClusterJoinStateUnknown")
	m.start()
	r.until("Joined", metav1.ConditionTrue, "MemberClusterJoined")
	r.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy")
}

// TestMemberRecreatedWhileItsAgentIsAwayTakesItsAgentBack gives the agent no new settings, because
// its token belongs to the identity.
func TestMemberRecreatedWhileItsAgentIsAwayTakesItsAgentBack(t *testing.T) {
	f := newFixture(t)
	r := f.register("recreated", every(10))
	m := r.serve(f)
	r.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy")
	m.stop()
	first := r.record()
	r.check(r.Delete(context.Background(), &first))
	r.until("Joined", metav1.ConditionTrue, "Leaving")
	m.start() // only now the agent receives the request to leave, and answers
	m.untilState(agent.Left, "this cluster has left the fleet")
	m.stop()
	r.untilGone()
	if err := r.get(&corev1.ConfigMap{}, naming.SystemNamespace, "left-"+r.name); !apierrors.IsNotFound(err) {
		t.Errorf("a member that answered is recorded as forced out (%v)", err)
	}
	r.check(r.Create(context.Background(), &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: r.name}, Spec: first.Spec}))
	m.start()
	r.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy")
}

func TestSecondAgentOfAMemberWaitsAndTakesOverFromOneThatStops(t *testing.T) {
	f := newFixture(t)
	spare := testkube.Start(t, "delivered")
	elsewhere := fixture{Client: spare.Client(t), t: t, cluster: spare}
	r := f.register("twice", every(1))
	first := r.serve(f)
	first.untilState(agent.Joined, "")
	r.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy")
	second := r.serve(elsewhere)
	second.untilState(agent.Standby, "sends heartbeats for this member, and this agent waits")
	if _, reason, joined := second.agent.Status(); joined {
		t.Errorf("the second agent is ready: %s", reason)
	}
	lease := leaseOf(r.namespaceName())
	r.check(r.get(lease, lease.Namespace, lease.Name))
	holder := *lease.Spec.HolderIdentity
	first.stop()
	second.untilState(agent.Joined, "joined as")
	r.check(r.get(lease, lease.Namespace, lease.Name))
	if *lease.Spec.HolderIdentity == holder {
		t.Errorf("the Lease is still held by %s", holder)
	}
	r.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy")
}

// wrongClock is ahead by so much, or behind if that is negative, and runs as fast as others.
type wrongClock struct {
	clock.RealClock
	by time.Duration
}

func (c wrongClock) Now() time.Time                   { return time.Now().Add(c.by) }
func (c wrongClock) Since(at time.Time) time.Duration { return c.Now().Sub(at) }

func TestMemberWhoseClockIsWrongIsAliveAndTheSkewIsShown(t *testing.T) {
	t.Parallel()
	for id, by := range map[string]time.Duration{"behind": -time.Hour, "ahead": time.Hour} {
		t.Run(id, func(t *testing.T) {
			f := newFixture(t)
			wrong := func(o *agent.Options) { o.Clock = wrongClock{by: by} }
			_, values := f.token("new-token", "")
			f.join(values, map[string]any{"clientID": id}, wrong)
			r := f.register(id, every(10))
			r.serve(f, wrong)
			cluster := f.untilReady(naming.Cluster(id), "Ready")
			r.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy")
			for kind, skew := range map[string]*int64{
				"Cluster": cluster.Status.Agent.ClockSkewSeconds, "MemberCluster": r.record().Status.ClockSkewSeconds,
			} {
				want := int64(by.Seconds())
				if skew == nil || *skew > want+1 || *skew < want-int64(slack.Seconds()) {
					t.Errorf("%s: the skew is shown as %v, want %d", kind, skew, want)
				}
			}
		})
	}
}

// TestEntriesOfOtherAgentsSurviveTheReport: a report has an entry per agent, and KubeFleet has
// agents that Muster has not.
func TestEntriesOfOtherAgentsSurviveTheReport(t *testing.T) {
	f := newFixture(t)
	r := f.register("shared", every(10))
	r.eventually("another agent writes its entry", func() error {
		var report clusterv1beta1.InternalMemberCluster
		if err := r.agent.Get(context.Background(), client.ObjectKey{Namespace: r.namespaceName(), Name: r.name}, &report); err != nil {
			return err
		}
		report.Status.AgentStatus = append(report.Status.AgentStatus, clusterv1beta1.AgentStatus{
			Type: "ServiceExportImportController", LastReceivedHeartbeat: metav1.Now(),
			Conditions: []metav1.Condition{{Type: "Joined", Status: metav1.ConditionTrue, Reason: "Joined", LastTransitionTime: metav1.Now()}},
		})
		return r.agent.Status().Update(context.Background(), &report)
	})
	agents := func(of []clusterv1beta1.AgentStatus) (types []clusterv1beta1.AgentType) {
		for _, a := range of {
			types = append(types, a.Type)
		}
		return types
	}
	m := r.serve(f)
	r.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy")
	r.eventually("the record shows both", func() error {
		if got := agents(r.record().Status.AgentStatus); len(got) != 2 {
			return fmt.Errorf("it shows %v", got)
		}
		return nil
	})
	m.stop()
	// An upstream agent in the place of Muster's updates the whole status, as it read it. The hub may
	// write the report at the same time.
	r.eventually("the upstream agent updates the status", func() error { return r.answer(metav1.ConditionTrue, "") })
	m.start()
	m.untilState(agent.Joined, "joined as")
	r.eventually("Muster's agent has taken its entry back, and left the other's alone", func() error {
		var report clusterv1beta1.InternalMemberCluster
		if err := r.get(&report, r.namespaceName(), r.name); err != nil {
			return err
		}
		if report.Status.AgentVersion == "" || len(report.Status.AgentStatus) != 2 {
			return fmt.Errorf("version %q, agents %v", report.Status.AgentVersion, agents(report.Status.AgentStatus))
		}
		return nil
	})
}
