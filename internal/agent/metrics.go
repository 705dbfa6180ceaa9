package agent

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

var (
	joinedGauge = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "muster_agent_joined", Help: "1 if the hub accepts this agent's beats, 0 if it has not or refuses its credential.",
	})
	heartbeats = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "muster_agent_heartbeats_total", Help: "Beats sent to the hub, by result: accepted or failed.",
	}, []string{"result"})
	credentialExpiry = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "muster_agent_credential_expiry_timestamp_seconds", Help: "When the agent's token expires; 0 if it has none or it never does.",
	})
)

func newRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(joinedGauge, heartbeats, credentialExpiry,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}
