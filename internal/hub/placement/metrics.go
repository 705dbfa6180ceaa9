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
)

// States of placements in metrics, the worst first.
const (
	metricRemoving    = "Removing"
	metricUnscheduled = "Unscheduled"
	metricFailing     = "Failing"
	metricPending     = "Pending"
	metricAvailable   = "Available"
)

var placementsMetric = prometheus.NewDesc("muster_hub_placements", "Placements by how they stand on the members that they pick.", []string{"kind", "state"}, nil)

// gauges are what a controller measures while it works.
type gauges struct {
	decisions prometheus.Histogram
	works     *prometheus.CounterVec
}

func newGauges() gauges {
	return gauges{
		decisions: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "muster_hub_placement_decision_duration_seconds", Help: "How long it takes to pick members for one placement and to plan what to write.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 8),
		}),
		works: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "muster_hub_placement_members_total", Help: "Members to which a placement was written, from which it was removed, or where that failed.",
		}, []string{"result"}),
	}
}

// Describe implements prometheus.Collector.
func (c *Controller) Describe(into chan<- *prometheus.Desc) {
	into <- placementsMetric
	c.gauges.decisions.Describe(into)
	c.gauges.works.Describe(into)
}

// Collect implements prometheus.Collector: placements are counted when they are asked for, out of the cache.
func (c *Controller) Collect(into chan<- prometheus.Metric) {
	c.gauges.decisions.Collect(into)
	c.gauges.works.Collect(into)
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
	for _, kind := range []string{"ClusterResourcePlacement", "ResourcePlacement"} {
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

// stateOf is how a placement stands, in one word.
func stateOf(s subject) string {
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
	for _, stage := range append(slices.Clone(stagesOfApplying), placement.ConditionDiffReported) {
		switch c := meta.FindStatusCondition(s.status.Conditions, s.kind+stage); {
		case c == nil, c.Status == metav1.ConditionTrue:
		case c.Status == metav1.ConditionFalse && c.Reason != reasonRolloutWaits:
			return metricFailing
		default:
			state = metricPending
		}
	}
	return state
}

// timed measures how long a decision takes.
func (c *Controller) timed(o observed) decision {
	begun := c.Clock.Now()
	defer func() { c.gauges.decisions.Observe(c.Clock.Since(begun).Seconds()) }()
	return decide(o)
}

// count notes what came of a plan.
func (c *Controller) count(p plan, failures failed) {
	result := func(targets []target, name string) {
		for _, t := range targets {
			if failures[t.namespace] != nil {
				c.gauges.works.WithLabelValues("failed").Inc()
			} else {
				c.gauges.works.WithLabelValues(name).Inc()
			}
		}
	}
	result(p.write, "written")
	result(p.remove, "removed")
}

// Serve shows the figures of placements in a registry until the context ends.
func (c *Controller) Serve(registry prometheus.Registerer) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := registry.Register(c); err != nil {
			return err
		}
		defer registry.Unregister(c)
		<-ctx.Done()
		return nil
	}
}
