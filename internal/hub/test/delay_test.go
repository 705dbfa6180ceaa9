package hub_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/naming"
)

// TestTheDelayOfALateHeartbeatIsShownAndSurvivesAFailOver sends heartbeats six seconds late, and
// then in time, before and after the hub is killed.
func TestTheDelayOfALateHeartbeatIsShownAndSurvivesAFailOver(t *testing.T) {
	f := newAlone(t, "")
	_, values := f.token("new-token", "")
	m := f.join(values, map[string]any{"clientID": "late"})
	cluster := f.untilReady(naming.Cluster("late"), "Ready")
	f.check(f.Patch(context.Background(), &cluster, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"heartbeatPeriodSeconds":2}}`))))
	played, answers := f.register("late", every(10)), 0
	answer := func() error { // each changes the status
		answers++
		return played.answer(metav1.ConditionTrue, fmt.Sprintf("v0.0.%d", answers))
	}
	f.eventually("the agent answers", answer)
	played.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy")
	punctual := func() { // the hub knows the period, and counts by it
		t.Helper()
		var lease coordinationv1.Lease
		var last time.Time
		for range 3 {
			f.eventually("the agent answers", answer)
			f.eventually("the agent sends another heartbeat", func() error {
				if err := f.get(&lease, cluster.Status.Namespace, naming.HeartbeatLease); err != nil || lease.Spec.RenewTime.After(last) {
					return err
				}
				return fmt.Errorf("the last one is of %s", last)
			})
			last = lease.Spec.RenewTime.Time
		}
	}
	shown := func(what string) {
		t.Helper()
		reported := 0
		f.eventually(what, func() error {
			reported++
			report := &clusterv1beta1.InternalMemberCluster{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Status.Namespace, Name: cluster.Name}}
			patch := fmt.Appendf(nil, `{"status":{"kubernetesVersion":"v1.30.%d"}}`, reported)
			var mc clusterv1beta1.MemberCluster
			if err := errors.Join(f.Status().Patch(context.Background(), report, client.RawPatch(types.MergePatchType, patch)), answer(),
				f.get(&cluster, f.workspace, cluster.Name), f.get(&mc, "", played.name)); err != nil {
				return err
			}
			for of, delay := range map[string]*clusterv1beta1.HeartbeatDelay{
				"Cluster": cluster.Status.HeartbeatDelay, "MemberCluster": mc.Status.HeartbeatDelay,
			} {
				if delay == nil || time.Since(delay.Hour.Time) > 2*time.Hour || slices.Max(delay.Seconds) < 5 || slices.Max(delay.Seconds) > 20 {
					return fmt.Errorf("%s: %+v", of, delay)
				}
			}
			return nil
		})
	}
	punctual()
	if delay := played.record().Status.HeartbeatDelay; delay != nil && slices.Max(delay.Seconds) > 0 {
		t.Errorf("before, the delay is %v", delay)
	}
	m.stop()
	time.Sleep(16 * time.Second) // late, and not lost
	m.start()
	f.eventually("the agent answers", answer)
	shown("both members show the delay")
	f.restartHub()
	punctual()
	shown("the next hub shows it, too")
	if err := writeStatus(played.agent, new(played.record()), `{"heartbeatDelay":null}`); err == nil {
		t.Error("a member removes its delay")
	}
}
