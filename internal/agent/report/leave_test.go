package report

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
)

func asking(state clusterv1beta1.ClusterState, agents ...clusterv1beta1.AgentStatus) *clusterv1beta1.InternalMemberCluster {
	return &clusterv1beta1.InternalMemberCluster{
		Spec:   clusterv1beta1.InternalMemberClusterSpec{State: state},
		Status: clusterv1beta1.InternalMemberClusterStatus{AgentStatus: agents},
	}
}

func TestLeaveIsReportedAtOnceAndThenNothingMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type said struct {
			At             time.Duration
			Joined, Reason string
		}
		var writes []said
		left := 0
		changed := make(chan struct{})
		var current atomic.Pointer[clusterv1beta1.InternalMemberCluster]
		current.Store(asking(clusterv1beta1.ClusterStateJoin))
		ask := func(report *clusterv1beta1.InternalMemberCluster) {
			current.Store(report)
			changed <- struct{}{}
		}
		member := &fakeMember{nodes: make(chan []any)}
		begun := time.Now()
		reporter := Reporter{
			Member: member, Clock: clock.RealClock{}, Explain: func(err error) string { return err.Error() },
			Observe: func() Session { return Session{Report: current.Load(), ReadyToLeave: true} }, Changed: changed, Left: func() { left++ },
			Write: func(_ context.Context, status clusterv1beta1.InternalMemberClusterStatus) error {
				joined := status.AgentStatus[0].Conditions[0]
				writes = append(writes, said{time.Since(begun), string(joined.Status), joined.Reason})
				return nil
			},
		}
		stop := start(t, &reporter)
		member.nodes <- nodeList("a")
		reported := clusterv1beta1.AgentStatus{Type: clusterv1beta1.MemberAgent}
		for _, report := range []*clusterv1beta1.InternalMemberCluster{
			asking(clusterv1beta1.ClusterStateLeave, reported), asking(clusterv1beta1.ClusterStateJoin, reported),
			asking(clusterv1beta1.ClusterStateLeave, reported),
			// The report made anew, in which another agent was faster.
			asking(clusterv1beta1.ClusterStateJoin, clusterv1beta1.AgentStatus{Type: "ServiceExportImportController"}),
		} {
			time.Sleep(time.Second)
			ask(report)
			synctest.Wait()
		}
		ask(asking(clusterv1beta1.ClusterStateLeave, reported))
		time.Sleep(time.Hour)
		stop()
		const joined, gone = "InternalMemberClusterJoined", "InternalMemberClusterLeft"
		want := []said{
			{0, "True", joined}, {time.Second, "False", gone}, {2 * time.Second, "True", joined}, {3 * time.Second, "False", gone},
			{4 * time.Second, "True", joined}, {4 * time.Second, "False", gone},
		}
		if diff := cmp.Diff(want, writes); diff != "" || left != 3 {
			t.Errorf("left %d times; -want +got:\n%s", left, diff)
		}
	})
}

func TestWhatCannotBePrunedIsReportedAtOnceAndTakenOffWhenItIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var blocked Unpruned
		type said struct {
			At      time.Duration
			Message string
		}
		var got []said
		changed, begun := make(chan struct{}, 1), time.Now()
		reporter := Reporter{
			Member: &fakeMember{}, Clock: clock.RealClock{}, Explain: func(err error) string { return err.Error() }, Changed: changed,
			Observe: func() Session {
				mu.Lock()
				defer mu.Unlock()
				return Session{Unpruned: blocked}
			},
			Write: func(_ context.Context, status clusterv1beta1.InternalMemberClusterStatus) error {
				s := said{At: time.Since(begun), Message: "no condition"}
				if found := meta.FindStatusCondition(status.AgentStatus[0].Conditions, "Pruned"); found != nil {
					s.Message = string(found.Status) + " " + found.Reason + ": " + found.Message
				}
				got = append(got, s)
				return nil
			},
		}
		stop := start(t, &reporter)
		report := func(now Unpruned) {
			mu.Lock()
			blocked = now
			mu.Unlock()
			changed <- struct{}{}
			time.Sleep(time.Second)
		}
		time.Sleep(6 * time.Second)
		report(Unpruned{"RemovalBlocked", "it is held"})
		report(Unpruned{})
		stop()
		want := []said{
			{5 * time.Second, "no condition"}, {6 * time.Second, "False RemovalBlocked: it is held"}, {7 * time.Second, "no condition"},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}
