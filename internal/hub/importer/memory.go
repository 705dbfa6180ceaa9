package importer

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// stagger is how far apart re-imports begin, so that a change of the hub's settings does not restart all agents at once.
const stagger = 500 * time.Millisecond

// memory is what the hub knows of imports while it runs. What a restart forgets is found out by trying again.
type memory struct {
	mu        sync.Mutex
	histories map[types.NamespacedName]history
	slots     map[types.NamespacedName]time.Time
	lastSlot  time.Time
	// claims are the clusters that an import has found, by their ID: two records of one cluster that are imported at the same time
	// do not see each other otherwise.
	claims map[string]types.NamespacedName
}

func newMemory() *memory {
	return &memory{histories: map[types.NamespacedName]history{}, slots: map[types.NamespacedName]time.Time{}, claims: map[string]types.NamespacedName{}}
}

func (m *memory) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.histories, key)
	delete(m.slots, key)
	for id, holder := range m.claims {
		if holder == key {
			delete(m.claims, id)
		}
	}
}

func (m *memory) history(key types.NamespacedName) (history, time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.histories[key], m.slots[key]
}

func (m *memory) remember(key types.NamespacedName, h history) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.histories[key] = h
}

// slot gives a re-import its turn, once.
func (m *memory) slot(key types.NamespacedName, now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if given, ok := m.slots[key]; ok {
		return given
	}
	next := m.lastSlot.Add(stagger)
	if next.Before(now) {
		next = now
	}
	m.lastSlot, m.slots[key] = next, next
	return next
}

// used takes the turn back.
func (m *memory) used(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.slots, key)
}

// claim takes a cluster for a record and returns who has it.
func (m *memory) claim(id string, key types.NamespacedName) types.NamespacedName {
	m.mu.Lock()
	defer m.mu.Unlock()
	if holder, taken := m.claims[id]; taken {
		return holder
	}
	m.claims[id] = key
	return key
}

// release gives a cluster back.
func (m *memory) release(id string, key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.claims[id] == key {
		delete(m.claims, id)
	}
}
