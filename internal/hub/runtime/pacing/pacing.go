// Package pacing bounds the deliveries that are under way at once.
//
// After a change for the whole fleet, each member reads, deploys and reports. If all do so at once
// on a small control plane, heartbeats and the Lease of the leader wait too long. So a window
// bounds the members at work, as in the congestion control of TCP (RFC 5681). A quick write
// enlarges it, a slow one halves it.
//
// Its invariant: deliveries get their turns in the order of the requests, and some are always under
// way.
package pacing

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// initial, least and most are windows: at first, on a slow API server, and on a quick one.
	initial, least, most = 128, 4, 1024
	// slow is the time of a write that halves the window. On an idle API server, a write takes some
	// 10 ms.
	slow = time.Second
	// patience bounds the wait for a report. A chart may take minutes, and other writes need none.
	patience = 2 * time.Second
	// few is a window worth a line in the log.
	few = 16
)

var (
	windowMetric = prometheus.NewDesc("muster_hub_delivery_window",
		"Deliveries to members that may be under way at once. It shrinks while the API server is slow.", nil, nil)
	waitingMetric = prometheus.NewDesc("muster_hub_delivery_waiting", "Deliveries to members that wait for their turn.", nil, nil)
)

// key is the key of a BundleDeployment or Work.
type key struct {
	kind string
	types.NamespacedName
}

// delivery is a delivery under way. It ends with an error, with the report of its member, or after
// its time.
type delivery struct {
	ended bool
	timer *time.Timer
}

// Pacer bounds the deliveries under way.
type Pacer struct {
	log logr.Logger

	mu sync.Mutex
	// window is the bound. Up to threshold, each quick write enlarges it by one. Above it, all of them
	// together do.
	window, threshold float64
	underWay          int
	waiting           []chan struct{}
	// unreported are the deliveries without a report.
	unreported map[key]*delivery
	// shrunkAt is the time of the last decrease. Writes that began before it shrink nothing more.
	shrunkAt time.Time
	// slowed is set from the first line in the log until the window has its first size again.
	slowed bool
}

// New returns a Pacer.
func New(log logr.Logger) *Pacer {
	return &Pacer{log: log, window: initial, threshold: most, unreported: map[key]*delivery{}}
}

// write calls do once it is its turn. The delivery then stays under way until its report.
func (p *Pacer) write(ctx context.Context, k key, do func() error) error {
	if err := p.acquire(ctx); err != nil {
		return err
	}
	d, began := &delivery{}, time.Now()
	p.mu.Lock()
	p.unreported[k] = d
	p.mu.Unlock()
	err := do()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.adapt(began, err)
	switch {
	case err != nil:
		p.end(k, d)
	case !d.ended:
		d.timer = time.AfterFunc(patience, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.end(k, d)
		})
	}
	return err
}

func (p *Pacer) acquire(ctx context.Context) error {
	turn := make(chan struct{})
	p.mu.Lock()
	p.waiting = append(p.waiting, turn)
	p.next()
	p.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.waiting, turn); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
	} else {
		p.underWay-- // its turn came meanwhile
		p.next()
	}
	return ctx.Err()
}

// next begins waiting deliveries up to the window. The caller holds the lock, as for adapt and end.
func (p *Pacer) next() {
	for len(p.waiting) > 0 && p.underWay < int(p.window) {
		close(p.waiting[0])
		p.waiting[0] = nil
		p.waiting = p.waiting[1:]
		p.underWay++
	}
}

// adapt changes the window by the time of a write.
func (p *Pacer) adapt(began time.Time, err error) {
	switch now := time.Now(); {
	case now.Sub(began) >= slow && began.After(p.shrunkAt):
		p.window = max(p.window/2, least)
		p.threshold, p.shrunkAt = p.window, now
	case now.Sub(began) >= slow, err != nil:
	case p.window < p.threshold:
		p.window = min(p.window+1, most)
	default:
		p.window = min(p.window+1/p.window, most)
	}
	p.logSpeed()
}

func (p *Pacer) logSpeed() {
	switch {
	case p.window <= few && !p.slowed:
		p.slowed = true
		p.log.Info("Deliveries wait for their turn, because the API server takes longer than a second for a write", "waiting", len(p.waiting))
	case p.window >= initial && p.slowed:
		p.slowed = false
		p.log.Info("Deliveries are written at full speed again")
	}
}

// end ends a delivery once. After the last one, the window has its first size again. A larger
// window has it as soon as fewer are under way, so that it does not stay open for a burst.
func (p *Pacer) end(k key, d *delivery) {
	if d == nil || d.ended {
		return
	}
	d.ended = true
	if d.timer != nil {
		d.timer.Stop()
	}
	if p.unreported[k] == d {
		delete(p.unreported, k)
	}
	p.underWay--
	p.next()
	switch {
	case p.underWay == 0:
		p.window, p.threshold = initial, most
		p.logSpeed()
	case p.underWay < initial:
		p.window = min(p.window, initial)
	}
}

// reported ends a delivery with the report of its member.
func (p *Pacer) reported(k key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end(k, p.unreported[k])
}

// Describe implements prometheus.Collector.
func (p *Pacer) Describe(into chan<- *prometheus.Desc) {
	into <- windowMetric
	into <- waitingMetric
}

// Collect implements prometheus.Collector.
func (p *Pacer) Collect(into chan<- prometheus.Metric) {
	p.mu.Lock()
	defer p.mu.Unlock()
	into <- prometheus.MustNewConstMetric(windowMetric, prometheus.GaugeValue, float64(int(p.window)))
	into <- prometheus.MustNewConstMetric(waitingMetric, prometheus.GaugeValue, float64(len(p.waiting)))
}
