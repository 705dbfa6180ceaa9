package notify

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	sentMetric = prometheus.NewDesc("muster_hub_notifications_total",
		"Notifications by sink and result: sent, failed (an attempt, which is repeated) or dropped.", []string{"sink", "result"}, nil)
	failingMetric = prometheus.NewDesc("muster_hub_notifications_failing",
		"1 if the last attempt to send to the sink failed, else 0.", []string{"sink"}, nil)
)

// The results of notifications.
const (
	resultSent    = "sent"
	resultFailed  = "failed"
	resultDropped = "dropped"
)

// counters holds the figures of all sinks.
type counters struct {
	mu      sync.Mutex
	counts  map[string]map[string]int
	failing map[string]bool
}

func newCounters() *counters {
	return &counters{counts: map[string]map[string]int{}, failing: map[string]bool{}}
}

func (c *counters) add(sink, result string, count int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts[sink] == nil {
		c.counts[sink] = map[string]int{}
	}
	c.counts[sink][result] += count
}

func (c *counters) of(sink, result string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts[sink][result]
}

func (c *counters) setFailing(sink string, failing bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failing[sink] = failing
}

func (c *counters) forget(sink string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.counts, sink)
	delete(c.failing, sink)
}

// Describe implements prometheus.Collector.
func (n *Notifier) Describe(into chan<- *prometheus.Desc) {
	into <- sentMetric
	into <- failingMetric
}

// Collect implements prometheus.Collector. A sink in the settings has all its figures from the
// start.
func (n *Notifier) Collect(into chan<- prometheus.Metric) {
	for _, sink := range n.config.Current().Notifications {
		n.sent.mu.Lock()
		failing, counts := 0.0, n.sent.counts[sink.Name]
		if n.sent.failing[sink.Name] {
			failing = 1
		}
		into <- prometheus.MustNewConstMetric(failingMetric, prometheus.GaugeValue, failing, sink.Name)
		for _, result := range []string{resultSent, resultFailed, resultDropped} {
			into <- prometheus.MustNewConstMetric(sentMetric, prometheus.CounterValue, float64(counts[result]), sink.Name, result)
		}
		n.sent.mu.Unlock()
	}
}
