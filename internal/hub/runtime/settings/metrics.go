package settings

import "github.com/prometheus/client_golang/prometheus"

var standbyMetric = prometheus.NewGauge(prometheus.GaugeOpts{
	Name: "muster_hub_standby_tokens_failing",
	Help: "Further addresses of the hub with a token of a standby that is missing, expired, or near its end.",
})

// Metrics collects the metrics of the settings of a hub process.
type Metrics struct{}

// Describe implements prometheus.Collector.
func (Metrics) Describe(into chan<- *prometheus.Desc) { standbyMetric.Describe(into) }

// Collect implements prometheus.Collector.
func (Metrics) Collect(into chan<- prometheus.Metric) { standbyMetric.Collect(into) }
