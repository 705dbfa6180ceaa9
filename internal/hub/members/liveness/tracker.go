// Package liveness tracks the heartbeats of members; no other package decides that a member is
// Lost.
//
// The package writes nothing. The controllers of Clusters and MemberClusters call Observe, and
// receive changes from Subscribe. The budget of a member is three heartbeat periods. The
// invariants: only the monotonic clock of the hub's machine counts, never a time in an object. This
// process waits for the budget before a member is Lost. Each member has one deadline; nothing
// polls.
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

// State is the hub's view of a member's agent.
//
//	        heartbeat              budget over
//	Unknown ───────► Online ──────────────────► Lost
//	   │               ▲                          │
//	   │ budget over   └───────── heartbeat ──────┘
//	   └──────────────────────────────────────────► Lost
type State string

// The states of a member.
const (
	// Unknown: no heartbeat yet since this process started; the membership object keeps its state.
	Unknown State = "Unknown"
	// Online: a heartbeat within the budget.
	Online State = "Online"
	// Lost: no heartbeat within the budget.
	Lost State = "Lost"
)

// Source is the place of an agent's heartbeats: a Lease or a status. It distinguishes Muster's
// agents (Lease) from agents of other projects (status).
type Source string

// The sources.
const (
	// InLease: the agent renews a Lease.
	InLease Source = "Lease"
	// InStatus: the agent writes a time into the status of its membership object or report.
	InStatus Source = "Status"
)

// overlap is the time after a heartbeat in a status during which the tracker ignores Lease
// renewals. A replaced Pod may still renew the Lease.
const overlap = time.Minute

// missedPeriods is the number of missing heartbeats in a row before a member is Lost.
const missedPeriods = 3

// defaultPeriod applies to members until the reconcile of their membership object.
const defaultPeriod = time.Minute

// Bounds of the rate of newly Lost members. If many members stop sending heartbeats in the same
// second, the cause is probably the network of the hub. A member with a heartbeat in the meantime
// never becomes Lost.
const (
	maxLostAtOnce = 100
	lostPause     = time.Second
)

// Tracker keeps the time of the last heartbeat of every member.
type Tracker struct {
	clock clock.Clock
	// server dates the times shown in membership objects.
	server      *servertime.Clock
	log         logr.Logger
	subscribers []chan event.GenericEvent
	rearm       chan struct{}

	// leases is the number of members with a Lease, once following has synced; counted holds their
	// namespaces.
	leases  atomic.Int64
	counted counted

	mu        sync.Mutex
	following toolscache.ResourceEventHandlerRegistration
	members   map[string]*member
	queue     deadlines
	// limited is the last time when the rate limit applied. resume is the earliest time when the
	// tracker marks further members as Lost.
	limited, resume time.Time
	transitions     map[State]int
	// hub counts all members, and workspaces counts them by workspace. calmed holds the namespaces to
	// announce after the release of the lock.
	hub        share
	workspaces map[string]*share
	calmed     []string
}

// member is one tracked member, identified by its member namespace. Before the first heartbeat in
// this process, its times are zero and source is empty.
type member struct {
	namespace string
	// record is the UID of its Cluster or MemberCluster; empty before the first reconcile.
	record   types.UID
	period   time.Duration
	state    State
	lastBeat time.Time
	// tracked is the time when this process began to watch the member.
	tracked time.Time
	// shares counts the member once its workspace is known.
	shares []*share
	// online is the time of the first heartbeat since the member was Lost.
	online time.Time
	source Source
	// inStatus is the time of the last heartbeat in a status.
	inStatus time.Time
	// skews holds the lead of the member's clock over the API server's clock at the last two
	// heartbeats.
	skews    [2]time.Duration
	deadline time.Time
	index    int // position in the queue; -1 if not queued
	// waiting is the agent waiting for the active one; nil for nearly all members.
	waiting *Waiting
	// paced: the last heartbeat followed the present period.
	paced  bool
	delays delays
}

// New returns a tracker without members. It measures by the machine's clock, and reports times by
// the API server's clock.
func New(c clock.Clock, server *servertime.Clock, log logr.Logger) *Tracker {
	return &Tracker{
		clock: c, server: server, log: log, rearm: make(chan struct{}, 1), members: map[string]*member{}, transitions: map[State]int{},
		workspaces: map[string]*share{},
	}
}

// Subscribe returns a channel of events about state changes, each with the member namespace.
// Subscribe before Start; every subscriber must read its channel.
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

// SetRecord assigns a member namespace to a membership object, and forgets the member of any
// earlier object. A re-created object has the same member namespace. After an outage of the API
// server, the hub's watches may show the new object without the deletion of the old one.
func (t *Tracker) SetRecord(namespace string, record types.UID) {
	defer t.announceCalm()
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

// Track tracks a joined member with the given heartbeat period. A member new to this process starts
// as Lost if its membership object shows Lost, otherwise as Unknown with a full budget.
func (t *Tracker) Track(namespace string, period time.Duration, recordedLost bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m, tracked := t.members[namespace]
	if !tracked {
		m = &member{namespace: namespace, state: Unknown, period: period, index: -1, tracked: t.clock.Now()}
		t.members[namespace] = m
		if recordedLost {
			m.state = Lost
			return
		}
		t.schedule(m, t.clock.Now())
		return
	}
	if m.period != period {
		m.period, m.paced = period, false
		if m.state != Lost {
			t.schedule(m, laterOf(m.lastBeat, t.clock.Now().Add(-period)))
		}
	}
}

// Beat notes a heartbeat of a member in the source, seen by the hub just now. The time in the
// heartbeat serves only to show the clock skew.
func (t *Tracker) Beat(namespace string, source Source, written time.Time) {
	t.mu.Lock()
	m, tracked := t.members[namespace]
	if !tracked {
		m = &member{namespace: namespace, period: defaultPeriod, index: -1, tracked: t.clock.Now()}
		t.members[namespace] = m
	}
	now := t.clock.Now()
	before, changed := m.state, m.changeSource(source, now)
	t.measure(m, !changed, now)
	m.lastBeat = now
	t.change(m, Online)
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
	t.announceCalm()
}

// changeSource stores the source of a heartbeat, and reports whether another agent sends them now.
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

// Forget drops a member after it has left.
func (t *Tracker) Forget(namespace string) {
	defer t.announceCalm()
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
	t.uncount(m)
	delete(t.members, m.namespace)
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

// schedule sets a member's deadline from the time of its last heartbeat. The caller holds the lock.
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

// tick notifies subscribers of newly Lost members.
func (t *Tracker) tick() {
	for _, namespace := range t.expire() {
		t.notify(namespace)
	}
}

// expire marks overdue members as Lost, up to maxLostAtOnce, and returns their namespaces.
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
				t.log.Info("Many members miss heartbeats at once: check the network of the hub. They become Lost one after another",
					"members", len(t.members), "atMostPerSecond", maxLostAtOnce)
			}
			t.limited = now
			break
		}
		m := heap.Pop(&t.queue).(*member)
		t.change(m, Lost)
		t.transitions[Lost]++
		lost = append(lost, m.namespace)
	}
	return lost
}

// ManyLost reports whether many members stopped sending heartbeats at once within the last minute.
// The log then has one line for all, and no member needs its own Event.
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
