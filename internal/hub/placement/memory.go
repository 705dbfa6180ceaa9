package placement

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/placement/scheduling"
	"github.com/muster-fleet/muster/internal/retry"
)

// memory holds the controller's data about placements and Works outside the cache. A restart may
// lose all of it.
type memory struct {
	clock clock.PassiveClock

	mu         sync.Mutex
	placements map[types.NamespacedName]*placementMemory
	works      map[types.UID]workMemory
}

// placementMemory is the data about one placement until it is gone.
type placementMemory struct {
	// policy is the policy of the last reconcile, nil if it was invalid.
	policy *scheduling.Policy
	// overridden: the placement has overrides, so the labels of members matter.
	overridden bool
	// reported is the time of the last status write.
	reported time.Time
	// versionAt is the time when the hub last acted on a new version of the selection. hasty
	// counts the versions in close succession.
	versionAt time.Time
	hasty     int
	// took is the duration of the last reconcile.
	took time.Duration
	// leftovers describes its leftovers of KubeFleet's hub, nil before the search.
	leftovers *string
	versions  versionMemory
}

// workMemory is the data about one Work until it is gone.
type workMemory struct {
	// appliedGeneration was first seen applied at appliedAt, by the hub's clock: a member's own
	// does not count.
	appliedGeneration int64
	appliedAt         time.Time
	// evicted: an eviction has deleted it, but the cache may not show this yet.
	evicted bool
}

func newMemory(clock clock.PassiveClock) *memory {
	return &memory{clock: clock, placements: map[types.NamespacedName]*placementMemory{}, works: map[types.UID]workMemory{}}
}

// update changes the data about a placement.
func (m *memory) update(key types.NamespacedName, change func(*placementMemory)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.placements[key]
	if p == nil {
		p = &placementMemory{}
		m.placements[key] = p
	}
	change(p)
}

// The range of gather.
const (
	minGather = 50 * time.Millisecond
	maxGather = 2 * time.Second
)

// gather returns the delay for collecting events before a reconcile: many members report at the
// same time. It is five times the duration of the last reconcile. One placement of many members
// therefore takes a sixth of a processor at most, except for the longest.
func (m *memory) gather(key types.NamespacedName) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	wait := minGather
	if p := m.placements[key]; p != nil {
		wait = max(wait, 5*p.took)
	}
	return min(wait, maxGather)
}

func (m *memory) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.placements, key)
}

func (m *memory) forgetWork(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.works, uid)
}

// keys returns the reconciled placements that meet a condition; nil selects all. The others are
// in the queue.
func (m *memory) keys(holds func(*placementMemory) bool) map[types.NamespacedName]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	keys := map[types.NamespacedName]bool{}
	for key, p := range m.placements {
		if holds == nil || holds(p) {
			keys[key] = true
		}
	}
	return keys
}

// affectedBy reports whether a change of a member affects the placement.
func (p *placementMemory) affectedBy(before, after *scheduling.Member) bool {
	return p.overridden && !maps.Equal(before.Labels, after.Labels) || p.policy != nil && p.policy.AffectedBy(before, after)
}

// nextReport returns the earliest time of the next status write of a placement.
func (m *memory) nextReport(key types.NamespacedName) (next time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.placements[key]; p != nil {
		next = p.reported.Add(statusPeriod)
	}
	return next
}

const (
	// patience is the number of versions of a selection in a row at intervals of statusPeriod.
	patience = 5
	// rest is the time without changes before the pauses are reset. It is at least twice the last
	// pause.
	rest = 10 * time.Second
	// maxPause is the longest pause.
	maxPause = 30 * time.Second
)

// pause returns the wait after the hub acted on a version.
func (p *placementMemory) pause() time.Duration {
	return retry.Doubled(statusPeriod, p.hasty-patience+1, maxPause)
}

// nextVersion returns the earliest time to act on a new version of the selection. Otherwise a
// constantly changing object would rewrite the Works of all members each time.
func (m *memory) nextVersion(key types.NamespacedName) (next time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.placements[key]; p != nil && !p.versionAt.IsZero() {
		next = p.versionAt.Add(p.pause())
	}
	return next
}

// acted notes an action of the hub on a new version of the selection.
func (m *memory) acted(key types.NamespacedName) {
	now := m.clock.Now()
	m.update(key, func(p *placementMemory) {
		if now.Sub(p.versionAt) < max(rest, 2*p.pause()) {
			p.hasty++
		} else {
			p.hasty = 0
		}
		p.versionAt = now
	})
}

// appliedSince returns the time when the hub first saw a Work's current generation applied.
func (m *memory) appliedSince(work *placement.Work) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.works[work.UID]
	if !ok || known.appliedGeneration != work.Generation {
		known.appliedGeneration, known.appliedAt = work.Generation, m.clock.Now()
		m.works[work.UID] = known
	}
	return known.appliedAt
}

// setEvicted notes the deletion of a Work by an eviction.
func (m *memory) setEvicted(work *placement.Work) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.works[work.UID]
	known.evicted = true
	m.works[work.UID] = known
}

// evicted reports whether an eviction is deleting Works of a member.
func (m *memory) evicted(current *currentWorks) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, work := range current.works {
		if m.works[work.UID].evicted {
			return true
		}
	}
	return false
}
