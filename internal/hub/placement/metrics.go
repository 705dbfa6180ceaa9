package placement

import (
	"context"
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

// States of placements in metrics, the worst first.
const (
	metricRemoving    = "Removing"
	metricUnscheduled = "Unscheduled"
	metricFailing     = "Failing"
	metricPending     = "Pending"
	metricAvailable   = "Available"
)

var placementsMetric = prometheus.NewDesc(
	"muster_hub_placements", "Placements by their state on the picked members.", []string{"kind", "state"}, nil)

// metrics are the controller's own metrics.
type metrics struct {
	decisions prometheus.Histogram
	members   *prometheus.CounterVec
}

func newMetrics() metrics {
	return metrics{
		decisions: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "muster_hub_placement_decision_duration_seconds",
			Help:    "Time to pick the members of a placement and to plan the writes, in seconds.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 8),
		}),
		members: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "muster_hub_placement_members_total",
			Help: "Writes of placements to members, by result: written, removed or failed.",
		}, []string{"result"}),
	}
}

// Describe implements prometheus.Collector.
func (c *Controller) Describe(into chan<- *prometheus.Desc) {
	into <- placementsMetric
	c.metrics.decisions.Describe(into)
	c.metrics.members.Describe(into)
}

// Collect implements prometheus.Collector: it counts the placements of the cache.
func (c *Controller) Collect(into chan<- prometheus.Metric) {
	c.metrics.decisions.Collect(into)
	c.metrics.members.Collect(into)
	ctx := context.Background()
	var crps placement.ClusterResourcePlacementList
	var rps placement.ResourcePlacementList
	for _, list := range []client.ObjectList{&crps, &rps} {
		if err := c.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			into <- prometheus.NewInvalidMetric(placementsMetric, fmt.Errorf("listing placements: %w", err))
			return
		}
	}
	counts := map[string]map[string]int{}
	for _, kind := range []string{kindCRP, kindRP} {
		counts[kind] = map[string]int{metricRemoving: 0, metricUnscheduled: 0, metricFailing: 0, metricPending: 0, metricAvailable: 0}
	}
	for i := range crps.Items {
		s := ofCRP(&crps.Items[i])
		counts[s.kind][stateOf(s)]++
	}
	for i := range rps.Items {
		s := ofRP(&rps.Items[i])
		counts[s.kind][stateOf(s)]++
	}
	for kind, states := range counts {
		for state, count := range states {
			into <- prometheus.MustNewConstMetric(placementsMetric, prometheus.GaugeValue, float64(count), kind, state)
		}
	}
}

// stateOf returns the state of a placement in metrics.
func stateOf(s genericPlacement) string {
	if s.GetDeletionTimestamp() != nil {
		return metricRemoving
	}
	scheduled := meta.FindStatusCondition(s.status.Conditions, s.kind+placement.ConditionScheduled)
	switch {
	case scheduled == nil:
		return metricPending
	case scheduled.Status == metav1.ConditionFalse:
		return metricUnscheduled
	}
	state := metricAvailable
	for _, stage := range allStages {
		switch c := meta.FindStatusCondition(s.status.Conditions, s.kind+stage); {
		case c == nil, c.Status == metav1.ConditionTrue:
		case failing(*c):
			return metricFailing
		default:
			state = metricPending
		}
	}
	// While members wait for their turn, the conditions of the placement hide failures of other
	// members.
	for _, member := range s.status.PlacementStatuses {
		if meta.IsStatusConditionTrue(member.Conditions, placement.ConditionScheduled) && slices.ContainsFunc(member.Conditions, failing) {
			return metricFailing
		}
	}
	return state
}

// failing reports whether a condition is False, except for a member that waits for its turn.
func failing(c metav1.Condition) bool {
	return c.Status == metav1.ConditionFalse && c.Reason != reasons.RolloutNotStartedYet
}

// measuredDecide decides and measures the duration.
func (c *Controller) measuredDecide(o observed) decision {
	start := c.Clock.Now()
	defer func() { c.metrics.decisions.Observe(c.Clock.Since(start).Seconds()) }()
	return decide(o)
}

// countResults counts the results of a plan.
func (c *Controller) countResults(p rolloutPlan, failed failures) {
	for result, targets := range map[string][]target{"written": p.write, "removed": p.remove} {
		for _, t := range targets {
			if failed[t.namespace] == nil {
				c.metrics.members.WithLabelValues(result).Inc()
			} else {
				c.metrics.members.WithLabelValues("failed").Inc()
			}
		}
	}
}
