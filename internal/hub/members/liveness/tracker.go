// Package liveness tracks the heartbeats of members; no other package decides that a member is lost.
//
// Liveness writes nothing: the controllers of records call Observe and are woken through Subscribe. Its invariants: only the clock of the hub's machine
// counts, which runs evenly, never a time that a member wrote; no member is lost before this process itself has waited for three periods without a heartbeat; there is one
// deadline per member in one queue, and nothing polls.
package liveness

import (
	"container/heap"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/muster-fleet/muster/internal/servertime"
)

// State is what the hub knows of a member's agent.
//
//	          beat                 budget over
//	Unknown ───────► Online ──────────────────► Lost
//	   │               ▲                          │
//	   │ budget over   └──────────── beat ────────┘
//	   └──────────────────────────────────────────► Lost
type State string

// The states of a member.
const (
	// Unknown: no beat yet since this process started; what the record says stays true.
	Unknown State = "Unknown"
	// Online: a beat within the budget.
	Online State = "Online"
	// Lost: no beat within the budget.
	Lost State = "Lost"
)

// Source is the object in which a beat was seen. It tells the agents of Muster from those of Rancher Fleet.
type Source string

// The sources.
const (
	// InLease: a Lease was renewed.
	InLease Source = "Lease"
	// InStatus: the agent wrote a time into the status of its record or report.
	InStatus Source = "Status"
)

// overlap is how long after a beat in a status a renewed Lease does not mean that the agent has changed: the Pod that an upgrade replaces renews
// the Lease until it ends.
const overlap = time.Minute

// missedPeriods is how many beats in a row may be missing.
const missedPeriods = 3

// defaultPeriod is assumed of a member that beats before its record was reconciled.
const defaultPeriod = time.Minute

// When many members fall silent in the same second, the network of the hub is more likely broken than theirs. Members are then declared lost at a
// bounded rate, and a member that beats meanwhile never was lost.
const (
	maxLostAtOnce = 100
	lostPause     = time.Second
)

// Tracker keeps the time of the last beat of every member.
type Tracker struct {
	clock clock.Clock
	// server tells what the records show.
	server      *servertime.Clock
	log         logr.Logger
	subscribers []chan event.GenericEvent
	rearm       chan struct{}

	// leases is how many members have a Lease, once following has synced; counted are their namespaces.
	leases  atomic.Int64
	counted counted

	mu        sync.Mutex
	following toolscache.ResourceEventHandlerRegistration
	members   map[string]*member
	queue     deadlines
	// limited is when more members were due than may be lost at once; resume is when the next of them may be lost.
	limited, resume time.Time
	transitions     map[State]int
}

// member is one tracked member, identified by its member namespace. Until this process has seen a beat, its times are zero and source is empty.
type member struct {
	namespace string
	// record is the UID of the record that it belongs to; empty until that is reconciled.
	record   types.UID
	period   time.Duration
	state    State
	lastBeat time.Time
	// online is when the first beat since the member was lost was seen.
	online time.Time
	source Source
	// inStatus is when the last beat in a status was seen.
	inStatus time.Time
	// skews are by how much the member's clock was ahead of the API server's at the last two beats.
	skews    [2]time.Duration
	deadline time.Time
	index    int // in the queue; -1 while lost
	// waiting is the agent that waits; nil if none does, as for nearly all members.
	waiting *Waiting
}

// New returns a tracker without members. It counts by the machine's clock, and dates what it tells by the API server's.
func New(c clock.Clock, server *servertime.Clock, log logr.Logger) *Tracker {
	return &Tracker{clock: c, server: server, log: log, rearm: make(chan struct{}, 1), members: map[string]*member{}, transitions: map[State]int{}}
}

// Subscribe returns a channel that yields an event with the member namespace whenever a member's state changes. All subscriptions are made before
// Start, and every subscriber reads its channel.
func (t *Tracker) Subscribe() <-chan event.GenericEvent {
	subscriber := make(chan event.GenericEvent, 1024)
	t.subscribers = append(t.subscribers, subscriber)
	return subscriber
}

func (t *Tracker) notify(namespace string) {
	for _, subscriber := range t.subscribers {
		subscriber <- event.GenericEvent{Object: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}}
	}
}

// SetRecord says to which record a member namespace belongs. What is known of the member of another one is forgotten: a record that was made anew has the same
// member namespace, and the watches of a hub whose API server was away may show it in the place of the former, which then never was gone.
func (t *Tracker) SetRecord(namespace string, record types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m, known := t.members[namespace]
	switch {
	case !known:
	case m.record == "":
		m.record = record
	case m.record != record:
		t.forget(m)
	}
}

// Track tracks a member that has joined, with the given period between beats. A member that is new to this process starts as Lost if its record says
// so, else as Unknown with its whole budget ahead.
func (t *Tracker) Track(namespace string, period time.Duration, recordedLost bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m, known := t.members[namespace]
	if !known {
		m = &member{namespace: namespace, state: Unknown, period: period, index: -1}
		t.members[namespace] = m
		if recordedLost {
			m.state = Lost
			return
		}
		t.schedule(m, t.clock.Now())
		return
	}
	if m.period != period {
		m.period = period
		if m.state != Lost {
			t.schedule(m, laterOf(m.lastBeat, t.clock.Now().Add(-period)))
		}
	}
}

// Beat records that the hub has just seen a member's beat change in the source. The time that the member wrote into it only serves to show how
// far its clock is off.
func (t *Tracker) Beat(namespace string, source Source, written time.Time) {
	t.mu.Lock()
	m, known := t.members[namespace]
	if !known {
		m = &member{namespace: namespace, period: defaultPeriod, index: -1}
		t.members[namespace] = m
	}
	before, changed := m.state, m.changeSource(source, t.clock.Now())
	m.state, m.lastBeat = Online, t.clock.Now()
	t.schedule(m, m.lastBeat)
	m.skews = [2]time.Duration{written.Sub(t.server.At(m.lastBeat)), m.skews[0]}
	if before != Online {
		m.online = m.lastBeat
		m.skews[1] = m.skews[0]
		t.transitions[Online]++
	}
	t.mu.Unlock()
	if before != Online || changed {
		t.notify(namespace)
	}
}

// changeSource records where a beat was seen, and returns whether another agent beats than before.
func (m *member) changeSource(source Source, now time.Time) (changed bool) {
	if source == InStatus {
		m.inStatus = now
	} else if m.source == InStatus && now.Sub(m.inStatus) < overlap {
		return false
	}
	changed = m.source != "" && m.source != source
	m.source = source
	return changed
}

// Forget drops a member that has left.
func (t *Tracker) Forget(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m, known := t.members[namespace]; known {
		t.forget(m)
	}
}

// forget drops a member; the caller holds the lock.
func (t *Tracker) forget(m *member) {
	if m.index >= 0 {
		heap.Remove(&t.queue, m.index)
	}
	delete(t.members, m.namespace)
}

// periodTolerance is the part of a period by which the one that a member beats with may be off before that is worth a write.
const periodTolerance = 4

// Period returns how often a member is to beat that beats every current, or that joins, with zero. It follows the number of Leases, and stays while that
// changes little or is not known yet.
func (t *Tracker) Period(current time.Duration) time.Duration {
	period := PeriodOf(int(t.leases.Load()))
	if current > 0 && (!t.leasesCounted() || (current-period).Abs() <= period/periodTolerance) {
		return current
	}
	return period
}

func (t *Tracker) leasesCounted() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.following != nil && t.following.HasSynced()
}

// Start waits for deadlines until the context ends.
func (t *Tracker) Start(ctx context.Context) error {
	for {
		wait := t.untilNext()
		timer := t.clock.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-t.rearm:
			timer.Stop()
		case <-timer.C():
			t.tick()
		}
	}
}

// schedule sets a member's deadline from the time its silence began. The caller holds the lock.
func (t *Tracker) schedule(m *member, since time.Time) {
	m.deadline = since.Add(m.budget())
	if m.index < 0 {
		heap.Push(&t.queue, m)
	} else {
		heap.Fix(&t.queue, m.index)
	}
	if t.queue[0] == m {
		select {
		case t.rearm <- struct{}{}:
		default: // a wake-up is pending already
		}
	}
}

// untilNext returns the time to the nearest deadline, or an hour if there is none.
func (t *Tracker) untilNext() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.queue) == 0 {
		return time.Hour
	}
	return max(laterOf(t.queue[0].deadline, t.resume).Sub(t.clock.Now()), 0)
}

// tick notifies subscribers of the members that are lost now.
func (t *Tracker) tick() {
	for _, namespace := range t.expire() {
		t.notify(namespace)
	}
}

// expire marks members lost whose deadline has passed, as many as may be lost at once, and returns their namespaces.
func (t *Tracker) expire() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lost []string
	now := t.clock.Now()
	if now.Before(t.resume) {
		return nil
	}
	for len(t.queue) > 0 && !t.queue[0].deadline.After(now) {
		if len(lost) == maxLostAtOnce {
			t.resume = now.Add(lostPause)
			if now.Sub(t.limited) > time.Minute {
				t.log.Info("Many members are silent at once; is the hub's own network in trouble? They are declared lost one after another",
					"members", len(t.members), "atMostPerSecond", maxLostAtOnce)
			}
			t.limited = now
			break
		}
		m := heap.Pop(&t.queue).(*member)
		m.state = Lost
		t.transitions[Lost]++
		lost = append(lost, m.namespace)
	}
	return lost
}

// ManyLost returns whether many members fell silent at once within the last minute. The log then says so once, and no Event about each is needed.
func (t *Tracker) ManyLost() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.limited.IsZero() && t.clock.Since(t.limited) < time.Minute
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
