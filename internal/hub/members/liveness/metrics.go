package liveness

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	membersMetric = prometheus.NewDesc("muster_hub_members", "Members by the state of their agents.", []string{"state"}, nil)
	ageMetric     = prometheus.NewDesc("muster_hub_oldest_beat_age_seconds",
		"Largest time since the last heartbeat of an online member, in seconds.", nil, nil)
	skewMetric = prometheus.NewDesc("muster_hub_largest_clock_skew_seconds",
		"Largest clock difference between an online member and the hub, in seconds.", nil, nil)
	changesMetric = prometheus.NewDesc("muster_hub_member_transitions_total",
		"Members that came online or became Lost since the hub started.", []string{"to"}, nil)
)

// Describe implements prometheus.Collector.
func (t *Tracker) Describe(into chan<- *prometheus.Desc) {
	into <- membersMetric
	into <- ageMetric
	into <- skewMetric
	into <- changesMetric
}

// Collect implements prometheus.Collector. It counts the figures at scrape time.
func (t *Tracker) Collect(into chan<- prometheus.Metric) {
	t.mu.Lock()
	defer t.mu.Unlock()
	counts := map[State]int{Unknown: 0, Online: 0, Lost: 0}
	var oldest, skew time.Duration
	for _, m := range t.members {
		counts[m.state]++
		if m.state == Online {
			oldest = max(oldest, t.clock.Since(m.lastBeat))
			skew = max(skew, m.skew().Abs())
		}
	}
	for state, count := range counts {
		into <- prometheus.MustNewConstMetric(membersMetric, prometheus.GaugeValue, float64(count), string(state))
	}
	into <- prometheus.MustNewConstMetric(ageMetric, prometheus.GaugeValue, oldest.Seconds())
	into <- prometheus.MustNewConstMetric(skewMetric, prometheus.GaugeValue, skew.Round(time.Second).Seconds())
	for _, state := range []State{Online, Lost} {
		into <- prometheus.MustNewConstMetric(changesMetric, prometheus.CounterValue, float64(t.transitions[state]), string(state))
	}
}
