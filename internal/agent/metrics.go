package agent

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/muster-fleet/muster/internal/delivery/protocol"
)

var (
	joinedGauge = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "muster_agent_joined", Help: "1 if the hub accepts this agent's heartbeats, else 0.",
	})
	heartbeats = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "muster_agent_heartbeats_total", Help: "Heartbeats sent to the hub, by result: accepted or failed.",
	}, []string{"result"})
	credentialExpiry = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "muster_agent_credential_expiry_timestamp_seconds",
		Help: "Expiry of the agent's token as a Unix time; 0 without a token or an expiry.",
	})
	fallbackGauge = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "muster_agent_hub_fallback", Help: "Position of the hub's address in use among its fallback addresses; 0 for any other address.",
	})
	worksGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "muster_agent_works", Help: "Works of this member, by state: Pending, Failing, Applied, Available or Compared.",
	}, []string{"state"})
	manifests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "muster_agent_manifests_total", Help: "Manifests of Works, by action: applied, failed, compared or removed.",
	}, []string{"result"})
)

// countWorks adds the counts of the deployer to the metrics.
func countWorks(t protocol.Tally) {
	worksGauge.Reset()
	for state, count := range t.Works {
		worksGauge.WithLabelValues(state).Set(float64(count))
	}
	for result, count := range t.Manifests {
		manifests.WithLabelValues(result).Add(float64(max(count, 0)))
	}
}

// Metrics returns the metrics of the agent and its process.
func Metrics() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(joinedGauge, heartbeats, credentialExpiry, fallbackGauge, worksGauge, manifests,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}
