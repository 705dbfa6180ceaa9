package agentbundle

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// table holds what is known of all agents, so that each can be judged beside the others.
type table struct {
	mu       sync.Mutex
	members  map[types.NamespacedName]member
	verdicts map[types.NamespacedName]verdict
}

// put takes over what was observed of one agent and returns where it stands, and for whom that changed something. An agent that is to be
// told counts as told from then on.
func (t *table) put(key types.NamespacedName, m member, now time.Time) (verdict, []types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.members[key] = m
	verdicts := plan(t.members, now)
	said := verdicts[key]
	if said.state == tell {
		m.told, m.toldAt, m.back, m.failure = m.wanted, now, false, ""
		t.members[key] = m
		verdicts = plan(t.members, now)
		said.wake = verdicts[key].wake
	}
	return said, t.replace(verdicts, key)
}

// drop forgets a Cluster that is gone.
func (t *table) drop(key types.NamespacedName, now time.Time) []types.NamespacedName {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.members[key]; !known {
		return nil
	}
	delete(t.members, key)
	return t.replace(plan(t.members, now), key)
}

// replace takes over new verdicts and returns of whom they are, but for one.
func (t *table) replace(verdicts map[types.NamespacedName]verdict, but types.NamespacedName) []types.NamespacedName {
	var changed []types.NamespacedName
	for key, v := range verdicts {
		if old := t.verdicts[key]; key != but && (old.state != v.state || old.behind != v.behind) {
			changed = append(changed, key)
		}
	}
	t.verdicts = verdicts
	return changed
}

// failureOf is what an agent says is wrong.
func (t *table) failureOf(key types.NamespacedName) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.members[key].failure
}

// fill puts the agents of a hub that has just started there, before any of them is judged.
func (t *table) fill(members map[types.NamespacedName]member) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.members, t.verdicts = members, map[types.NamespacedName]verdict{}
}
