package agentbundle

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// agentsPerUpdate is how many agents there are for each update that may be in flight:
// the budget is a tenth.
const agentsPerUpdate = 10

// rollout admits agents to their update, within the budget:
//
//	agents ──┬── settled: up to date, offline, unmanaged, ...   counted
//	         ├── in flight: sent, not confirmed                 take up the budget; one that failed stops newVersion
//	         └── waiting, in groups with one result each        the first of a group that is not blocked is admitted
//
// It keeps counts, so that an event costs what is in flight and not the whole fleet. Agents whose
// decision changes with an event of another are returned to be reconciled.
type rollout struct {
	mu     sync.Mutex
	agents map[types.NamespacedName]agent
	// managed agents there are; ready ones of them, online, are fit to try a version first.
	managed, ready int
	// confirmed counts the agents online by the common part of the version that they have confirmed.
	confirmed map[string]int
	// workspaces counts the managed agents by workspace.
	workspaces map[string]int
	// inFlight says of each agent in flight whether its update has failed.
	inFlight map[types.NamespacedName]bool
	waiting  map[group]*queue
}

// change is what is new for an agent that waits.
type change int

const (
	// joining: it was sent nothing before, and has nothing to lose by what made another one fall
	// silent.
	joining change = iota
	// ownSettings: only its own settings are new, which cannot be wrong with all.
	ownSettings
	// newVersion: what is common to all is new.
	newVersion
)

// group is what waiting agents have in common, so that either all of them may be admitted or none.
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

// queue are the agents of a group in the order of their names, and why they wait.
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

// update takes over what was observed of an agent and returns what is decided about it, and which
// others are to be reconciled. An agent whose state is send counts as in flight from then on.
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

// drop forgets an agent whose Cluster is gone and returns who is to be reconciled.
func (r *rollout) drop(key types.NamespacedName, now time.Time) []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remove(key)
	return r.admit(now)
}

// fill takes over the agents that a hub finds when it starts, before the first is admitted. All of
// them are to be reconciled.
func (r *rollout) fill(agents map[types.NamespacedName]agent, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, a := range agents {
		r.remove(key)
		r.add(key, a, now)
	}
	r.admit(now)
}

// failureOf is what an agent says is wrong.
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
	a, known := r.agents[key]
	if !known {
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

func (r *rollout) count(workspace string, a agent, by int) {
	if a.unmanaged != "" {
		return
	}
	r.managed += by
	if r.workspaces[workspace] += by; r.workspaces[workspace] == 0 {
		delete(r.workspaces, workspace)
	}
	if a.online && a.ready {
		r.ready += by
	}
	if a.online && a.confirmed {
		if r.confirmed[a.sent.common] += by; r.confirmed[a.sent.common] == 0 {
			delete(r.confirmed, a.sent.common)
		}
	}
}

// admit admits waiting agents as long as the budget allows one: those with a ready Cluster first,
// then by name. It returns who is admitted, and who waits for another reason than before.
func (r *rollout) admit(now time.Time) (changed []types.NamespacedName) {
	if len(r.waiting) == 0 {
		return nil
	}
	s := r.survey()
	for {
		var next types.NamespacedName
		var of group
		for g := range r.waiting {
			key, admitted := s.next(g)
			if admitted && s.result(g).state == send && (next.Name == "" || before(g, key, of, next)) {
				next, of = key, g
			}
		}
		if next.Name == "" {
			break
		}
		s.admitted(next, of)
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
