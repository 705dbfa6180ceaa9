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

// memory is what the controller remembers of placements and Works besides what the cache shows. All
// of it can be lost in a restart.
type memory struct {
	clock clock.PassiveClock

	mu         sync.Mutex
	placements map[types.NamespacedName]*placementMemory
	works      map[types.UID]workMemory
}

// placementMemory is what is remembered of one placement until it is gone.
type placementMemory struct {
	// policy is that of the last reconcile, nil if it was invalid.
	policy *scheduling.Policy
	// overridden: there are overrides for the placement, so that the labels of members make
	// a difference to it.
	overridden bool
	// reported is when its status was last written.
	reported time.Time
	// versionAt is when another version of what is selected was last acted on, hasty how many have
	// followed each other without a rest.
	versionAt time.Time
	hasty     int
	// took is how long the last reconcile took.
	took time.Duration
	// leftovers is what KubeFleet's hub has left of it, nil if that was not looked for.
	leftovers *string
	versions  versionMemory
}

// workMemory is what is remembered of one Work until it is gone.
type workMemory struct {
	// appliedGeneration was first seen applied at appliedAt, by the hub's clock: a member's
	// own does not count.
	appliedGeneration int64
	appliedAt         time.Time
	// evicted: an eviction has deleted it, which the cache may not show yet.
	evicted bool
}

func newMemory(clock clock.PassiveClock) *memory {
	return &memory{clock: clock, placements: map[types.NamespacedName]*placementMemory{}, works: map[types.UID]workMemory{}}
}

// update changes what is remembered of a placement.
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

// gather is how long events are collected before a placement is reconciled: many members report at
// the same time. It is five times as long as the last reconcile took, so that one placement of many
// members takes a sixth of a processor at most, but for the longest.
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

// keys returns the placements that were reconciled before and for which a condition holds; nil
// holds for all. The others are in the queue.
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

// affectedBy says whether a change of a member makes a difference to the placement.
func (p *placementMemory) affectedBy(before, after *scheduling.Member) bool {
	return p.overridden && !maps.Equal(before.Labels, after.Labels) || p.policy != nil && p.policy.AffectedBy(before, after)
}

// nextReport is when the status of a placement may be written next.
func (m *memory) nextReport(key types.NamespacedName) (next time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.placements[key]; p != nil {
		next = p.reported.Add(statusPeriod)
	}
	return next
}

const (
	// patience is how many versions of what is selected may follow each other a statusPeriod apart.
	patience = 5
	// rest is for how long nothing may change for the pauses to be forgotten, at least twice the
	// last pause.
	rest = 10 * time.Second
	// maxPause is the longest pause.
	maxPause = 30 * time.Second
)

// pause is how long to wait after a version that was acted on.
func (p *placementMemory) pause() time.Duration {
	return retry.Doubled(statusPeriod, p.hasty-patience+1, maxPause)
}

// nextVersion is when another version of what is selected may be acted on. An object that changes
// all the time would otherwise have the Works of all members written each time.
func (m *memory) nextVersion(key types.NamespacedName) (next time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.placements[key]; p != nil && !p.versionAt.IsZero() {
		next = p.versionAt.Add(p.pause())
	}
	return next
}

// acted notes that another version of what is selected is acted on.
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

// appliedSince returns when the hub first saw that a Work was applied as it now is.
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

// setEvicted notes that an eviction is deleting a Work.
func (m *memory) setEvicted(work *placement.Work) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.works[work.UID]
	known.evicted = true
	m.works[work.UID] = known
}

// evicted says whether an eviction is deleting Works of a member.
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
