package clustergroup

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// cluster is one with so many Bundles, all ready or none.
func cluster(name string, bundles int, ready bool, message string) fleet.Cluster {
	c := fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: name}}
	c.Status.Summary = fleet.BundleSummary{DesiredReady: bundles, Ready: bundles}
	if !ready {
		c.Status.Summary = fleet.BundleSummary{
			DesiredReady: bundles, NotReady: bundles, NonReadyResources: []fleet.NonReadyResource{{
				Name: "app", State: fleet.StateNotReady, Message: message,
			}},
		}
	}
	c.Status.ResourceCounts = fleet.ResourceCounts{Ready: 1, DesiredReady: 2}
	c.Status.Conditions = []fleet.Condition{kube.Condition(fleet.ConditionReady, ready, "", message)}
	return c
}

func TestDescribe(t *testing.T) {
	condition := func(kind string, ok bool, reason, message string) fleet.Condition {
		c := kube.Condition(kind, ok, reason, message)
		c.LastUpdateTime, c.LastTransitionTime = "2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"
		return c
	}
	counted := condition("Processed", true, "Counted", "")
	for _, c := range []struct {
		name     string
		clusters []fleet.Cluster
		invalid  error
		want     fleet.ClusterGroupStatus
	}{
		{"an empty group is ready", nil, nil, fleet.ClusterGroupStatus{
			Conditions: []fleet.Condition{counted, condition("Ready", true, "Ready", "")},
			Display:    fleet.ClusterGroupDisplay{ReadyClusters: "0/0", ReadyBundles: "0/0", State: "Ready"},
		}},
		{"all are ready", []fleet.Cluster{cluster("b", 2, true, ""), cluster("a", 1, true, "")}, nil, fleet.ClusterGroupStatus{
			ClusterCount: 2, Conditions: []fleet.Condition{counted, condition("Ready", true, "Ready", "")},
			Summary: fleet.BundleSummary{Ready: 3, DesiredReady: 3}, ResourceCounts: fleet.ResourceCounts{Ready: 2, DesiredReady: 4},
			Display: fleet.ClusterGroupDisplay{ReadyClusters: "2/2", ReadyBundles: "3/3", State: "Ready"},
		}},
		{"one is not, and is named with its reason", []fleet.Cluster{cluster("b", 1, false, "web is down"), cluster("a", 1, true, "")}, nil,
			fleet.ClusterGroupStatus{
				ClusterCount: 2, NonReadyClusterCount: 1, NonReadyClusters: []string{"b"},
				Conditions: []fleet.Condition{counted, condition("Ready", false, "ClustersNotReady", "not ready: b: web is down")},
				Summary: fleet.BundleSummary{Ready: 1, NotReady: 1, DesiredReady: 2, NonReadyResources: []fleet.NonReadyResource{
					{Name: "b/app", State: fleet.StateNotReady, Message: "web is down"},
				}},
				ResourceCounts: fleet.ResourceCounts{Ready: 2, DesiredReady: 4},
				Display:        fleet.ClusterGroupDisplay{ReadyClusters: "1/2 (b)", ReadyBundles: "1/2", State: "NotReady"},
			}},
		{"a selector that makes no sense", nil, errors.New("no operator"), fleet.ClusterGroupStatus{
			Conditions: []fleet.Condition{condition("Processed", false, "InvalidSelector", "spec.selector: no operator"),
				condition("Ready", false, "InvalidSelector", "spec.selector: no operator")},
			Display: fleet.ClusterGroupDisplay{ReadyClusters: "0/0", ReadyBundles: "0/0", State: "Ready"},
		}},
	} {
		if diff := cmp.Diff(c.want, describe(fleet.ClusterGroupStatus{}, c.clusters, c.invalid, now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestThousandsOfClustersFitIntoAStatus(t *testing.T) {
	var clusters []fleet.Cluster
	for i := range 3000 {
		clusters = append(clusters, cluster(fmt.Sprintf("c%04d", i), 3, false, "down"))
	}
	got := describe(fleet.ClusterGroupStatus{}, clusters, nil, now)
	if got.NonReadyClusterCount != 3000 || len(got.NonReadyClusters) != 10 || len(got.Summary.NonReadyResources) != 10 ||
		got.Summary.DesiredReady != 9000 {
		t.Errorf("got %+v", got)
	}
	if want := "0/3000 (c0000 c0001 c0002…)"; got.Display.ReadyClusters != want {
		t.Errorf("the column says %q", got.Display.ReadyClusters)
	}
	if ready := kube.FindCondition(got.Conditions,
		fleet.ConditionReady); ready.Message != "not ready: c0000: down; c0001: down; c0002: down; and 2997 more" {
		t.Errorf("the message is %q", ready.Message)
	}
}

func TestBeatsWakeNoGroup(t *testing.T) {
	before := cluster("a", 1, true, "")
	after := *before.DeepCopy()
	after.Status.Agent.LastSeen, after.ResourceVersion = metav1.NewTime(now), "2"
	if relevant(&before, &after) {
		t.Error("a beat is relevant")
	}
	after.Status.Summary.Ready = 0
	if !relevant(&before, &after) {
		t.Error("a count is not relevant")
	}
}
