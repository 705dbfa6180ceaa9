package main

import (
	"math"
	"time"

	"k8s.io/utils/clock"

	"github.com/muster-fleet/muster/internal/testkube"
)

const (
	noise  = "noise"
	outage = "outage"

	// skew is the error of a wrong clock.
	skew = 10 * time.Minute
	// slowHalf is the delay of a slow connection in one direction, loss its share of lost packets.
	slowHalf = time.Second
	loss     = 0.1
)

// skewed is a clock with a constant error.
type skewed struct {
	clock.RealClock
	by time.Duration
}

func (s skewed) Now() time.Time                      { return s.RealClock.Now().Add(s.by) }
func (s skewed) Since(since time.Time) time.Duration { return s.Now().Sub(since) }

// clockOf returns the clock of a member. A tenth of the fleet is ahead, and a tenth behind.
func clockOf(i int) clock.Clock {
	switch i % 10 {
	case 3:
		return skewed{by: skew}
	case 7:
		return skewed{by: -skew}
	}
	return clock.RealClock{}
}

// reach returns the address of the hub for a member. If a phase disturbs connections, each member
// has its own, and some have a wrong clock.
func (r *run) reach(n *native, i int) string {
	if !r.options.disturbs() {
		return r.cluster.Config.Host
	}
	n.link, n.clock = testkube.NewLink(r.t, r.cluster.Config.Host), clockOf(i)
	return n.link.URL
}

// noise measures a fleet with bad networks. Of a hundred members, five are slow and lose packets,
// and the connection of one breaks every second period.
func (r *run) noise() {
	links := r.links()
	for i, l := range links {
		if i%20 == 2 {
			l.Become(testkube.Quality{Delay: slowHalf, Loss: loss})
		}
	}
	from, oldest := r.now(), 0.0
	for cut := true; time.Since(from.at) < r.options.noise; cut = !cut {
		for i, l := range links {
			if i%100 == 1 {
				l.Become(testkube.Quality{Cut: cut})
			}
		}
		time.Sleep(r.period())
		if _, s, err := r.leader(); err == nil {
			oldest = max(oldest, s.sum("muster_hub_oldest_beat_age_seconds"))
		}
	}
	r.become(testkube.Quality{})
	to := r.now()
	r.costs(from, to, len(r.members))
	r.result.add("noise: failed heartbeats", to.failed-from.failed, "heartbeats")
	r.result.add("noise: oldest heartbeat, of the period", oldest/r.period().Seconds(), "periods")
	r.result.add("noise: members falsely lost", to.lost()-from.lost(), "members")
	r.settled()
}

// outage measures the return of a fleet after a time without the hub's API server.
func (r *run) outage() {
	r.become(testkube.Quality{Silent: true})
	time.Sleep(r.options.outage)
	from := r.now()
	r.become(testkube.Quality{})
	stop, busiest := make(chan struct{}), make(chan float64)
	go func() { busiest <- busiestSecond(stop) }()
	took := r.eventually("all members are online again", func() bool {
		_, s, err := r.leader()
		return err == nil && s.members("Online") == len(r.members)
	})
	r.result.add("outage: all online after", took.Seconds(), "s")
	r.settled()
	close(stop)
	to := r.now()
	r.costs(from, to, len(r.members))
	r.result.add("outage: heartbeats in the busiest second", <-busiest, "heartbeats")
	r.result.add("outage: failed heartbeats after it", to.failed-from.failed, "heartbeats")
}

// busiestSecond returns the most heartbeats that were sent within one second, until it is stopped.
func busiestSecond(stop <-chan struct{}) (most float64) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	accepted, failed := beats()
	for before := accepted + failed; ; {
		select {
		case <-stop:
			return most
		case <-tick.C:
		}
		accepted, failed = beats()
		most, before = math.Max(most, accepted+failed-before), accepted+failed
	}
}

func (r *run) links() (all []*testkube.Link) {
	for _, m := range r.members {
		if n, ok := m.(*native); ok && n.link != nil {
			all = append(all, n.link)
		}
	}
	return all
}

// become changes all connections.
func (r *run) become(q testkube.Quality) {
	for _, l := range r.links() {
		l.Become(q)
	}
}

// lost returns the number of times that the hub has found a member lost.
func (s state) lost() float64 {
	return s.hub.sum("muster_hub_member_transitions_total", `to="Lost"`)
}
