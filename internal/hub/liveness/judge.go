// Package liveness judges which members are silent; no other package does.
//
// It writes nothing: the controllers of the records ask State and are woken through Subscribe. Its invariants: a member is judged by when
// the hub saw its beat change, never by a time that the member wrote; nobody is declared lost before a full budget of silence
// that this process has watched itself; there is one deadline per member in one queue, and nothing polls.
package liveness

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"
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

// missedPeriods is how many beats in a row may be missing.
const missedPeriods = 3

// defaultPeriod is assumed of a member that beats before its record has been looked at.
const defaultPeriod = time.Minute

// When many members fall silent in the same second, the trouble is more likely the hub's own than theirs. Then they are declared lost
// at a bounded rate, which is told once; a member that beats before its turn never was lost.
const (
	maxLostAtOnce = 100
	lostPause     = time.Second
)

// Judge keeps the time of the last beat of every member.
type Judge struct {
	clock       clock.Clock
	log         logr.Logger
	subscribers []chan event.GenericEvent
	rearm       chan struct{}

	mu      sync.Mutex
	members map[string]*member
	queue   deadlines
	// mass is when the last mass expiry was met, and until when the next members are kept.
	mass, resume time.Time
	transitions  map[State]int
}

// member is one entry of the roll, identified by its member namespace.
type member struct {
	namespace string
	period    time.Duration
	state     State
	lastBeat  time.Time // zero until this process has seen one
	// skews are by how much the member's clock was ahead of the hub's at the last two beats.
	skews    [2]time.Duration
	deadline time.Time
	index    int // in the queue; -1 while lost
}

// New returns a judge that knows nobody.
func New(c clock.Clock, log logr.Logger) *Judge {
	return &Judge{clock: c, log: log, rearm: make(chan struct{}, 1), members: map[string]*member{}, transitions: map[State]int{}}
}

// Subscribe returns a channel that yields an event with the member namespace whenever a member's state changes. All subscriptions
// are made before Start, and every one is read.
func (j *Judge) Subscribe() <-chan event.GenericEvent {
	subscriber := make(chan event.GenericEvent, 1024)
	j.subscribers = append(j.subscribers, subscriber)
	return subscriber
}

func (j *Judge) announce(namespace string) {
	for _, subscriber := range j.subscribers {
		subscriber <- event.GenericEvent{Object: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}}
	}
}

// Track makes sure that a member which has once joined is watched, with the given period between beats. If it is new to this
// process it starts as Lost if its record says so, else as Unknown with a full budget ahead of it.
func (j *Judge) Track(namespace string, period time.Duration, recordedLost bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	m, known := j.members[namespace]
	if !known {
		m = &member{namespace: namespace, state: Unknown, period: period, index: -1}
		j.members[namespace] = m
		if recordedLost {
			m.state = Lost
			return
		}
		j.schedule(m, j.clock.Now())
		return
	}
	if m.period != period {
		m.period = period
		if m.state != Lost {
			j.schedule(m, laterOf(m.lastBeat, j.clock.Now().Add(-period)))
		}
	}
}

// Beat records that the hub has just seen a member's beat change, and what time the member says it was. That is shown and judges
// nobody.
func (j *Judge) Beat(namespace string, said time.Time) {
	j.mu.Lock()
	m, known := j.members[namespace]
	if !known {
		m = &member{namespace: namespace, period: defaultPeriod, index: -1}
		j.members[namespace] = m
	}
	before := m.state
	m.state, m.lastBeat = Online, j.clock.Now()
	j.schedule(m, m.lastBeat)
	m.skews = [2]time.Duration{said.Sub(m.lastBeat), m.skews[0]}
	if before != Online {
		m.skews[1] = m.skews[0]
		j.transitions[Online]++
	}
	j.mu.Unlock()
	if before != Online {
		j.announce(namespace)
	}
}

// Forget drops a member that has left.
func (j *Judge) Forget(namespace string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if m, known := j.members[namespace]; known {
		if m.index >= 0 {
			heap.Remove(&j.queue, m.index)
		}
		delete(j.members, namespace)
	}
}

// State returns the state of a member and when the hub saw its last beat; zero if not since this process started.
func (j *Judge) State(namespace string) (State, time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if m, known := j.members[namespace]; known {
		return m.state, m.lastBeat
	}
	return Unknown, time.Time{}
}

// Members returns how many members are tracked.
func (j *Judge) Members() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.members)
}

// Period is how often each of so many members beats: 50 ms times their number, so that all of them together cost the hub at most
// twenty writes a second, but at least 10 s and at most a minute.
func Period(members int) time.Duration {
	return min(max(time.Duration(members)*50*time.Millisecond, 10*time.Second), time.Minute)
}

// Start waits for deadlines until the context ends.
func (j *Judge) Start(ctx context.Context) error {
	for {
		wait := j.untilNext()
		timer := j.clock.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-j.rearm:
			timer.Stop()
		case <-timer.C():
			j.tick()
		}
	}
}

// schedule sets a member's deadline from the time its silence began. The caller holds the lock.
func (j *Judge) schedule(m *member, since time.Time) {
	m.deadline = since.Add(missedPeriods * m.period)
	if m.index < 0 {
		heap.Push(&j.queue, m)
	} else {
		heap.Fix(&j.queue, m.index)
	}
	if j.queue[0] == m {
		select {
		case j.rearm <- struct{}{}:
		default: // a wake-up is pending already
		}
	}
}

// untilNext returns the time to the nearest deadline, or an hour if there is none.
func (j *Judge) untilNext() time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.queue) == 0 {
		return time.Hour
	}
	return max(laterOf(j.queue[0].deadline, j.resume).Sub(j.clock.Now()), 0)
}

// tick announces everybody whose deadline has passed.
func (j *Judge) tick() {
	for _, namespace := range j.expire() {
		j.announce(namespace)
	}
}

// expire marks those whose deadline has passed, as many as may be lost at once, and returns their namespaces.
func (j *Judge) expire() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var lost []string
	now := j.clock.Now()
	if now.Before(j.resume) {
		return nil
	}
	for len(j.queue) > 0 && !j.queue[0].deadline.After(now) {
		if len(lost) == maxLostAtOnce {
			j.resume = now.Add(lostPause)
			if now.Sub(j.mass) > time.Minute {
				j.log.Info("Many members are silent at once; is the hub's own network in trouble? They are declared lost one after another",
					"members", len(j.members), "atMostPerSecond", maxLostAtOnce)
			}
			j.mass = now
			break
		}
		m := heap.Pop(&j.queue).(*member)
		m.state = Lost
		j.transitions[Lost]++
		lost = append(lost, m.namespace)
	}
	return lost
}

// Mass says whether many members fell silent at once within the last minute. What is then told of each of them need not be.
func (j *Judge) Mass() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return !j.mass.IsZero() && j.clock.Since(j.mass) < time.Minute
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
