package identity

import "github.com/prometheus/client_golang/prometheus"

var (
	termMetric = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "muster_hub_term", Help: "Term of this hub. Of two hubs with the same key, members obey the higher term.",
	})
	stoppedMetric = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "muster_hub_stopped", Help: "1 if this hub changes nothing, because it is fenced or demoted, else 0.",
	})
	unprovenMetric = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "muster_hub_unproven_terms", Help: "Members with a higher term of this hub in their reports, without a valid signature.",
	})
)

// Metrics collects the metrics of a hub process.
type Metrics struct{}

// Describe implements prometheus.Collector.
func (Metrics) Describe(into chan<- *prometheus.Desc) {
	for _, gauge := range []prometheus.Gauge{termMetric, stoppedMetric, unprovenMetric} {
		gauge.Describe(into)
	}
}

// Collect implements prometheus.Collector.
func (Metrics) Collect(into chan<- prometheus.Metric) {
	for _, gauge := range []prometheus.Gauge{termMetric, stoppedMetric, unprovenMetric} {
		gauge.Collect(into)
	}
}

// observe sets the metrics. The caller holds the lock.
func (k *Keeper) observe() {
	unprovenMetric.Set(float64(len(k.unproven)))
	if k.current == nil {
		return
	}
	termMetric.Set(float64(k.current.Term))
	stopped := 0.0
	if k.current.Stopped(k.cluster) != "" {
		stopped = 1
	}
	stoppedMetric.Set(stopped)
}
