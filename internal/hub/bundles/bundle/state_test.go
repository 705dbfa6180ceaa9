package bundle

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/bundles/rollup"
	"github.com/muster-fleet/muster/internal/kube"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// targetAt is a target whose agent has deployed what is wanted, changed.
func targetAt(name string, change func(*target)) target {
	cluster := clusterOne.DeepCopy()
	cluster.Name = name
	b := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "app"}}
	t := target{cluster: cluster, desired: desiredDeployment(b, cluster, "s-a:1")}
	t.deployment = t.desired.DeepCopy()
	t.deployment.Status = fleet.BundleDeploymentStatus{AppliedDeploymentID: "s-a:1", Ready: true, NonModified: true}
	change(&t)
	return t
}

func TestEntry(t *testing.T) {
	outdated := func(t *target) { t.desired.Spec.DeploymentID = "s-a:2" }
	for _, c := range []struct {
		name     string
		change   func(*target)
		released bool
		state    fleet.BundleState
		message  string
	}{
		{"in place", func(*target) {}, false, fleet.StateReady, ""},
		{"just updated", outdated, true, fleet.StateWaitApplied, "the agent has not reported it yet"},
		{"held back", outdated, false, fleet.StatePending, "held back by the rollout"},
		{"not even made, because others go first", func(t *target) { t.deployment = nil }, false, fleet.StatePending, "held back by the rollout"},
		{
			"paused with its Cluster", func(t *target) { outdated(t); t.desired.Spec.Paused, t.cluster.Spec.Paused = true, true }, false,
			fleet.StatePaused, "the Cluster is paused",
		},
		{
			"paused with its Bundle", func(t *target) { outdated(t); t.desired.Spec.Paused = true }, false,
			fleet.StatePaused, "the Bundle is paused",
		},
		{"outside of the windows of its Cluster", func(t *target) {
			outdated(t)
			opens := metav1.NewTime(now)
			t.desired.Spec.OffSchedule, t.cluster.Status.Scheduled = true, true
			t.cluster.Status.Window = &fleet.ClusterWindow{Opens: &opens}
		}, false, fleet.StateOutsideWindow, "outside of the windows of its Schedules until 2026-01-02T03:04:05Z"},
		{"updated, and its agent is lost", func(t *target) {
			outdated(t)
			t.cluster.Status.Conditions = []fleet.Condition{kube.Condition(fleet.ConditionReady, false, "AgentLost", "agent lost")}
		}, true, fleet.StateWaitApplied, "agent lost"},
		{"in place, and its agent is lost since", func(t *target) {
			t.cluster.Status.Agent.LastSeen = metav1.NewTime(now)
			t.cluster.Status.Conditions = []fleet.Condition{kube.Condition(fleet.ConditionReady, false, "AgentLost", "agent lost")}
		}, false, fleet.StateNotReady, "agent lost, as of 2026-01-02T03:04:05Z: Ready"},
		{"changed there, and its agent is lost since", func(t *target) {
			t.deployment.Status.NonModified = false
			t.deployment.Status.ModifiedStatus = []fleet.ModifiedStatus{{Kind: "A", Name: "a"}}
			t.cluster.Status.Agent.LastSeen = metav1.NewTime(now)
			t.cluster.Status.Conditions = []fleet.Condition{kube.Condition(fleet.ConditionReady, false, "AgentLost", "agent lost")}
		}, false, fleet.StateModified, "agent lost, as of 2026-01-02T03:04:05Z: A a was changed"},
		{"written, but the cache does not show it", func(t *target) {
			outdated(t)
			t.pending, t.deployment.Spec.DeploymentID = time.Second, "s-a:2"
		}, false, fleet.StateWaitApplied, "the agent has not reported it yet"},
		{"values that make no sense", func(t *target) { t.problem = errors.New("no zone") }, false, fleet.StateErrApplied, "no zone"},
		{"a write that failed", func(t *target) { t.failure = errors.New("forbidden") }, true, fleet.StateOutOfSync, "forbidden"},
	} {
		tt := targetAt("c1", c.change)
		want := rollup.Entry{
			Name: "c1", State: c.state, Message: c.message, Deployment: tt.deployment, Gone: strings.HasPrefix(c.message, "agent lost"),
		}
		if diff := cmp.Diff(want, tt.entry("clusters", c.released)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	if got := targetAt("c1", func(*target) {}).entry("elsewhere", false).Name; got != "clusters/c1" {
		t.Errorf("a Cluster of another workspace is called %s", got)
	}
}

func TestOnlyWhatChangedIsWritten(t *testing.T) {
	for _, c := range []struct {
		name     string
		change   func(*target)
		released bool
		want     bool
	}{
		{"nothing changed", func(*target) {}, false, false},
		{"it is released", func(*target) {}, true, true},
		{"it waits, and is staged", func(t *target) { t.desired.Spec.StagedDeploymentID = "s-a:2" }, false, true},
		{"it is paused", func(t *target) { t.desired.Spec.Paused = true }, false, true},
		{"its window closes", func(t *target) { t.desired.Spec.OffSchedule = true }, false, true},
		{"it depends on another", func(t *target) { t.desired.Spec.DependsOn = []fleet.BundleRef{{Name: "first"}} }, false, true},
		{"the Bundle got a label", func(t *target) { t.desired.Labels["team"] = "x" }, false, true},
		{"its values were deleted", func(t *target) { t.valuesLost = true }, false, true},
		{"it does not exist and waits, so that its agent removes nothing", func(t *target) { t.deployment = nil }, false, true},
		{"it does not exist", func(t *target) { t.deployment = nil }, true, true},
		{"it is being written", func(t *target) { t.desired.Spec.Paused, t.pending = true, time.Second }, false, false},
		{"it makes no sense", func(t *target) { t.desired.Spec.Paused, t.problem = true, errors.New("no zone") }, false, false},
	} {
		if got := targetAt("c1", c.change).needsWrite(c.released); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestDescribe(t *testing.T) {
	condition := func(kind string, ok bool, reason, message string) fleet.Condition {
		c := kube.Condition(kind, ok, reason, message)
		c.LastUpdateTime, c.LastTransitionTime = "2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"
		return c
	}
	supported := condition("Supported", true, "Supported", "")
	b := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "app", Generation: 3}}
	b.Spec.Targets = []fleet.BundleTarget{{}}
	outdated := func(t *target) { t.desired.Spec.DeploymentID = "s-a:2" }
	again := b.DeepCopy()
	again.Status.Conditions = []fleet.Condition{condition("Ready", true, "Ready", ""), condition("Processed", true, "Processed", "")}
	for _, c := range []struct {
		name string
		seen observed
		want fleet.BundleStatus
	}{
		{"all is well", observed{bundle: b, content: packed{sum: "a"}, targets: []target{targetAt("c1", func(*target) {})}}, fleet.BundleStatus{
			ObservedGeneration: 3, ResourcesSHA256Sum: "a", MaxUnavailable: 1, MaxNew: 50,
			Conditions: []fleet.Condition{condition("Ready", true, "Ready", ""), condition("Processed", true, "Processed", ""), supported},
			Summary:    fleet.BundleSummary{Ready: 1, DesiredReady: 1}, Display: fleet.BundleDisplay{ReadyClusters: "1/1", State: "Ready"},
			PartitionStatus: []fleet.PartitionStatus{{
				Name: "All", Count: 1, MaxUnavailable: 1, Summary: fleet.BundleSummary{Ready: 1, DesiredReady: 1},
			}},
		}},
		{"one was just updated", observed{bundle: again, content: packed{sum: "a"}, targets: []target{targetAt("c1", outdated)}},
			fleet.BundleStatus{
				ObservedGeneration: 3, ResourcesSHA256Sum: "a", MaxUnavailable: 1, MaxNew: 50, Unavailable: 1,
				Conditions: []fleet.Condition{
					condition("Ready", false, "WaitApplied", "WaitApplied(1) [Cluster c1: the agent has not reported it yet]"),
					condition("Processed", true, "Processed", ""), supported,
				},
				Summary: fleet.BundleSummary{WaitApplied: 1, DesiredReady: 1, NonReadyResources: []fleet.NonReadyResource{
					{Name: "c1", State: fleet.StateWaitApplied, Message: "the agent has not reported it yet"},
				}},
				Display: fleet.BundleDisplay{ReadyClusters: "0/1", State: "WaitApplied"},
				PartitionStatus: []fleet.PartitionStatus{
					{Name: "All", Count: 1, MaxUnavailable: 1, Unavailable: 1, Summary: fleet.BundleSummary{WaitApplied: 1, DesiredReady: 1}},
				},
			}},
		{"no Cluster matches", observed{bundle: b}, fleet.BundleStatus{
			ObservedGeneration: 3, MaxNew: 50,
			Conditions: []fleet.Condition{condition("Ready", true, "NoTarget", "its targets match no Cluster"),
				condition("Processed", true, "Processed", ""), supported},
			Display: fleet.BundleDisplay{ReadyClusters: "0/0", State: "Ready"},
		}},
		{"it makes no sense, and what is deployed is shown",
			observed{bundle: b, problem: errors.New("bad.yaml: line 1"), targets: []target{targetAt("c1", func(*target) {})}}, fleet.BundleStatus{
				ObservedGeneration: 3, MaxUnavailable: 1, MaxNew: 50,
				Conditions: []fleet.Condition{
					condition("Ready", false, "Error", "bad.yaml: line 1"),
					condition("Processed", false, "Invalid", "bad.yaml: line 1; deployed objects stay as they are"), supported,
				},
				Summary: fleet.BundleSummary{Ready: 1, DesiredReady: 1}, Display: fleet.BundleDisplay{ReadyClusters: "1/1", State: "ErrApplied"},
				PartitionStatus: []fleet.PartitionStatus{{
					Name: "All", Count: 1, MaxUnavailable: 1, Summary: fleet.BundleSummary{Ready: 1, DesiredReady: 1},
				}},
			}},
	} {
		if diff := cmp.Diff(c.want, describe(c.seen, decide(c.seen), 0, now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestALargeFleetIsWrittenInBatches(t *testing.T) {
	var o observed
	p := plan{}
	for i := range 2*batch + 1 {
		next := targetAt(fmt.Sprintf("c%d", i), func(t *target) {
			if i%2 == 0 {
				t.deployment = nil
			}
		})
		o.targets, p.release = append(o.targets, next), append(p.release, true)
	}
	fresh, changed, more := o.due(p)
	if len(fresh) != batch/2 || len(changed) != batch/2 || !more || !p.release[batch-1] || p.release[batch] {
		t.Errorf("%d are created, %d changed, and others follow: %t", len(fresh), len(changed), more)
	}
	o.targets, p.release = o.targets[:batch], p.release[:batch]
	if _, _, more := o.due(p); more {
		t.Error("after a whole batch others follow")
	}
}
