package report

import (
	"context"
	"sync"
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
		asks := make(chan *clusterv1beta1.InternalMemberCluster)
		member := &fakeMember{nodes: make(chan []any)}
		start := time.Now()
		reporter := Reporter{
			Member: member, Clock: clock.RealClock{}, Explain: func(err error) string { return err.Error() },
			Start: asking(clusterv1beta1.ClusterStateJoin), Asks: asks, Left: func() { left++ },
			Departure: func() (bool, string) { return true, "" },
			Write: func(_ context.Context, status clusterv1beta1.InternalMemberClusterStatus) error {
				joined := status.AgentStatus[0].Conditions[0]
				writes = append(writes, said{time.Since(start), string(joined.Status), joined.Reason})
				return nil
			},
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			reporter.Run(ctx)
		}()
		member.nodes <- nodeList("a")
		reported := clusterv1beta1.AgentStatus{Type: clusterv1beta1.MemberAgent}
		for _, ask := range []*clusterv1beta1.InternalMemberCluster{
			asking(clusterv1beta1.ClusterStateLeave, reported), asking(clusterv1beta1.ClusterStateJoin, reported),
			asking(clusterv1beta1.ClusterStateLeave, reported),
			// The report made anew, in which another agent was faster.
			asking(clusterv1beta1.ClusterStateJoin, clusterv1beta1.AgentStatus{Type: "ServiceExportImportController"}),
		} {
			time.Sleep(time.Second)
			asks <- ask
		}
		asks <- asking(clusterv1beta1.ClusterStateLeave, reported)
		time.Sleep(time.Hour)
		cancel()
		<-done
		const joined, gone = "InternalMemberClusterJoined", "InternalMemberClusterLeft"
		want := []said{
			{0, "True", joined}, {time.Second, "False", gone}, {2 * time.Second, "True", joined}, {3 * time.Second, "False", gone},
			{4 * time.Second, "True", joined}, {4 * time.Second, "False", gone},
		}
		if diff := cmp.Diff(want, writes); diff != "" || left != 3 {
			t.Errorf("told %d times of leaving; -want +got:\n%s", left, diff)
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
		changed, start := make(chan struct{}, 1), time.Now()
		reporter := Reporter{
			Member: &fakeMember{}, Clock: clock.RealClock{}, Explain: func(err error) string { return err.Error() }, Departing: changed,
			Unpruned: func() Unpruned {
				mu.Lock()
				defer mu.Unlock()
				return blocked
			},
			Write: func(_ context.Context, status clusterv1beta1.InternalMemberClusterStatus) error {
				s := said{At: time.Since(start), Message: "no condition"}
				if found := meta.FindStatusCondition(status.AgentStatus[0].Conditions, "Pruned"); found != nil {
					s.Message = string(found.Status) + " " + found.Reason + ": " + found.Message
				}
				got = append(got, s)
				return nil
			},
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			reporter.Run(ctx)
		}()
		tell := func(now Unpruned) {
			mu.Lock()
			blocked = now
			mu.Unlock()
			changed <- struct{}{}
			time.Sleep(time.Second)
		}
		time.Sleep(6 * time.Second)
		tell(Unpruned{"RemovalBlocked", "it is held"})
		tell(Unpruned{})
		cancel()
		<-done
		want := []said{{5 * time.Second, "no condition"}, {6 * time.Second, "False RemovalBlocked: it is held"}, {7 * time.Second, "no condition"}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}
