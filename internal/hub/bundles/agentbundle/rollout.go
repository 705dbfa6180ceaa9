package agentbundle

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// agentsPerUpdate is the number of agents for each update in flight: the budget is a tenth.
const agentsPerUpdate = 10

// rollout admits agents to their update, within the budget:
//
//	agents ──┬── settled: up to date, offline, unmanaged, ...   counted
//	         ├── in flight: sent, not confirmed                 take up the budget; a failed one stops newVersion
//	         └── waiting, in groups with one result each        the first of a group not blocked is admitted
//
// It keeps counts, so the cost of an event depends on the updates in flight and not on the size of
// the fleet. If an event changes the decision for another agent, rollout returns this agent for
// reconciliation.
type rollout struct {
	mu     sync.Mutex
	agents map[types.NamespacedName]agent
	// managed is the number of managed agents. ready counts the agents online with a ready
	// Cluster: they are fit to try a version first.
	managed, ready int
	// confirmed counts the agents online by the common part of their confirmed version.
	confirmed map[string]int
	// workspaces counts the managed agents by workspace.
	workspaces map[string]int
	// inFlight maps each agent in flight to whether its update has failed.
	inFlight map[types.NamespacedName]bool
	waiting  map[group]*queue
}

// change is the kind of the awaited change of an agent.
type change int

const (
	// joining: the hub has sent the agent no version before. A faulty version cannot cut it off.
	joining change = iota
	// ownSettings: only the agent's own settings are new. A mistake in them affects no other agent.
	ownSettings
	// newVersion: the part common to all agents is new.
	newVersion
)

// group holds the common properties of waiting agents: either all of them may be admitted or
// none.
type group struct {
	common string
	change change
	ready  bool
}

func groupOf(a agent) group {
	g := group{a.desired.common, newVersion, a.ready}
	if a.sent == (version{}) {
		g.change = joining
	} else if a.sent.common == a.desired.common {
		g.change = ownSettings
	}
	return g
}

// queue holds the agents of a group in the order of their names, and the reason why they wait.
type queue struct {
	keys   []types.NamespacedName
	result decision
}

func newRollout() *rollout {
	return &rollout{
		agents: map[types.NamespacedName]agent{}, confirmed: map[string]int{}, workspaces: map[string]int{},
		inFlight: map[types.NamespacedName]bool{}, waiting: map[group]*queue{},
	}
}

// update stores an observation of an agent. It returns the decision for the agent, and the other
// agents to reconcile. An agent with the state send counts as in flight from then on.
func (r *rollout) update(key types.NamespacedName, a agent, now time.Time) (d decision, changed []types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d = a.decide(now); d.state == send {
		a = a.sending(now)
	}
	if r.agents[key] != a || r.inFlight[key] != a.failed(now) {
		r.remove(key)
		r.add(key, a, now)
		changed = slices.DeleteFunc(r.admit(now), func(other types.NamespacedName) bool { return other == key })
	}
	switch {
	case d.state == "" && r.agents[key] == a:
		return r.waiting[groupOf(a)].result, changed
	case d.state == "", d.state == send:
		return decision{state: send, wake: now.Add(confirmTimeout)}, changed
	}
	return d, changed
}

// drop forgets the agent of a deleted Cluster and returns the agents to reconcile.
func (r *rollout) drop(key types.NamespacedName, now time.Time) []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remove(key)
	return r.admit(now)
}

// fill stores the agents found at the start of a hub, before the first is admitted. The caller
// must reconcile all of them.
func (r *rollout) fill(agents map[types.NamespacedName]agent, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, a := range agents {
		r.remove(key)
		r.add(key, a, now)
	}
	r.admit(now)
}

// failureOf returns the failure reported by an agent.
func (r *rollout) failureOf(key types.NamespacedName) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.agents[key].failure
}

func (r *rollout) add(key types.NamespacedName, a agent, now time.Time) {
	r.agents[key] = a
	r.count(key.Namespace, a, 1)
	if a.inFlight() {
		r.inFlight[key] = a.failed(now)
	}
	if a.decide(now).state == "" {
		g := groupOf(a)
		if r.waiting[g] == nil {
			r.waiting[g] = &queue{}
		}
		at, _ := slices.BinarySearchFunc(r.waiting[g].keys, key, compare)
		r.waiting[g].keys = slices.Insert(r.waiting[g].keys, at, key)
	}
}

func (r *rollout) remove(key types.NamespacedName) {
	a, listed := r.agents[key]
	if !listed {
		return
	}
	delete(r.agents, key)
	delete(r.inFlight, key)
	r.count(key.Namespace, a, -1)
	g := groupOf(a)
	q := r.waiting[g]
	if q == nil {
		return
	}
	if at, waits := slices.BinarySearchFunc(q.keys, key, compare); waits {
		q.keys = slices.Delete(q.keys, at, at+1)
	}
	if len(q.keys) == 0 {
		delete(r.waiting, g)
	}
}

func (r *rollout) count(workspace string, a agent, delta int) {
	if a.unmanaged != "" {
		return
	}
	r.managed += delta
	if r.workspaces[workspace] += delta; r.workspaces[workspace] == 0 {
		delete(r.workspaces, workspace)
	}
	if a.online && a.ready {
		r.ready += delta
	}
	if a.online && a.confirmed {
		if r.confirmed[a.sent.common] += delta; r.confirmed[a.sent.common] == 0 {
			delete(r.confirmed, a.sent.common)
		}
	}
}

// admit admits waiting agents as long as the budget lasts: agents with a ready Cluster first,
// then by name. It returns the admitted agents and the agents with a new reason to wait.
func (r *rollout) admit(now time.Time) (changed []types.NamespacedName) {
	if len(r.waiting) == 0 {
		return nil
	}
	s := r.survey()
	for {
		var next types.NamespacedName
		var chosen group
		for g := range r.waiting {
			key, admitted := s.next(g)
			if admitted && s.result(g).state == send && (next.Name == "" || before(g, key, chosen, next)) {
				next, chosen = key, g
			}
		}
		if next.Name == "" {
			break
		}
		s.admitted(next, chosen)
		a := r.agents[next]
		r.remove(next)
		r.add(next, a.sending(now), now)
		changed = append(changed, next)
	}
	for g, q := range r.waiting {
		if v := s.result(g); v != q.result {
			q.result = v
			changed = append(changed, q.keys...)
		}
	}
	return changed
}

func before(g group, key types.NamespacedName, other group, otherKey types.NamespacedName) bool {
	if g.ready != other.ready {
		return g.ready
	}
	return compare(key, otherKey) < 0
}

func compare(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
