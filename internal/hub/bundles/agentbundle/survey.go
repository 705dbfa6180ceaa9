package agentbundle

import (
	"math/bits"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// stoppingShare stops a version once this part of its trials failed: a tenth. No other agents
	// receive the version then.
	stoppingShare = 10
	// listedFailures limits the number of failed agents in a message.
	listedFailures = 10
)

// survey shows the effect of the updates in flight on waiting agents. No single workspace stops
// the others: its tenants choose the registry, resources and placement of their agents, and the
// reports of their clusters. If a hub has agents in one workspace only, this workspace counts.
type survey struct {
	*rollout
	budget int
	// inFlight counts the updates within the budget. inFlightOnline counts only agents with
	// heartbeats. It limits joining agents and changes of own settings.
	inFlight, inFlightOnline int
	// all is the trial of a version among all agents; online is limited to agents with heartbeats.
	all, online trial
	// silent holds the agents without heartbeats since their update.
	silent failures
}

// failures are agents whose update failed.
type failures struct {
	count int
	// first is the first failed agent by name.
	first      types.NamespacedName
	workspaces map[string]bool
}

func (f *failures) add(key types.NamespacedName) {
	if f.workspaces == nil {
		f.workspaces = map[string]bool{}
	}
	f.count++
	f.first = first(key, f.first)
	f.workspaces[key.Namespace] = true
}

// trial is the progress of sent but unconfirmed versions, by their common part.
type trial struct {
	// first is one agent with a version on trial. tried counts such agents, and failed holds the
	// failures among them.
	first  map[string]types.NamespacedName
	tried  map[string]int
	failed map[string]*failures
}

func newTrial() trial {
	return trial{map[string]types.NamespacedName{}, map[string]int{}, map[string]*failures{}}
}

func (t *trial) add(key types.NamespacedName, common string, failed bool) {
	t.tried[common]++
	if !failed {
		t.first[common] = first(key, t.first[common])
		return
	}
	if t.failed[common] == nil {
		t.failed[common] = &failures{}
	}
	t.failed[common].add(key)
}

// first returns the first name in sort order; other may be empty.
func first(key, other types.NamespacedName) types.NamespacedName {
	if other.Name == "" || compare(key, other) < 0 {
		return key
	}
	return other
}

func (r *rollout) survey() *survey {
	s := &survey{rollout: r, budget: max(1, r.managed/agentsPerUpdate), all: newTrial(), online: newTrial()}
	for key, failed := range r.inFlight {
		a := r.agents[key]
		common := a.sent.common
		if a.lost && common != a.desired.common {
			continue // it went offline with an outdated version, and gets another on its return
		}
		if !failed && a.online {
			s.inFlightOnline++
		}
		switch {
		case failed && !a.online:
			s.silent.add(key) // the update may have cut it off
		case !failed:
			s.inFlight++
		}
		if a.before == common {
			continue // only its own settings are new; they cannot be wrong for other agents
		}
		s.all.add(key, common, failed && (a.online || r.confirmed[common] == 0))
		if a.online {
			s.online.add(key, common, failed)
		}
	}
	if s.silent.count > 0 && !s.spread(&s.silent) {
		s.silent.count = min(s.silent.count, s.budget-1) // one workspace cannot use up the turns of others
	}
	s.inFlight += s.silent.count
	return s
}

// spread reports whether failures affect more than one workspace, or the only one there is.
func (s *survey) spread(f *failures) bool { return len(f.workspaces) > 1 || len(s.workspaces) == 1 }

// stop returns the failures that stop a version for a group; nil if the rollout continues.
func (s *survey) stop(g group) *failures {
	if g.change != joining && s.silent.count >= s.budget {
		return &s.silent // they have used up the budget
	}
	t, common := s.trialOf(g), g.common
	f := t.failed[common]
	if f == nil || !s.spread(f) || f.count*stoppingShare < t.tried[common]+s.confirmed[common] {
		return nil
	}
	return f
}

// next returns the next agent of a group to admit. An unconfirmed version is not tried in a
// workspace with a failure.
func (s *survey) next(g group) (types.NamespacedName, bool) {
	failed := s.trialOf(g).failed[g.common]
	for _, key := range s.waiting[g].keys {
		if failed == nil || s.confirmed[g.common] > 0 || g.change == ownSettings || !failed.workspaces[key.Namespace] {
			return key, true
		}
	}
	return types.NamespacedName{}, false
}

// trialOf returns the relevant trial for a group. For a joining agent, only agents with heartbeats
// count: a version without heartbeats elsewhere costs it nothing.
func (s *survey) trialOf(g group) trial {
	if g.change == joining {
		return s.online
	}
	return s.all
}

// result admits the next agent of a group, or returns the reason why the group waits.
func (s *survey) result(g group) decision {
	confirmed := s.confirmed[g.common] > 0
	if g.change == ownSettings || g.change == joining && confirmed {
		if s.inFlightOnline >= s.budget {
			return decision{state: WaitingForTurn}
		}
		return decision{state: send}
	}
	t, inFlight := s.trialOf(g), s.inFlight
	if g.change == joining {
		inFlight = s.inFlightOnline
	}
	trying, tried := t.first[g.common]
	if f := s.stop(g); f != nil {
		return stopped(f)
	}
	_, candidate := s.next(g)
	switch {
	case !confirmed && tried:
		return decision{state: WaitingForTurn, behind: trying}
	case !candidate && !s.triesElsewhere(g):
		return stopped(t.failed[g.common])
	case !candidate, !confirmed && !g.ready && s.readier(g), inFlight >= s.budget:
		return decision{state: WaitingForTurn}
	}
	return decision{state: send}
}

func stopped(f *failures) decision {
	d := decision{state: RolloutStopped, behind: f.first}
	if f.count > 1 { // rounded: a thousand failures must not cost each waiting agent a thousand writes
		d.failed = 1 << (bits.Len(uint(f.count)) - 1)
	}
	return d
}

// readier reports whether a ready agent can try a version before the agents of a group.
func (s *survey) readier(g group) bool {
	if s.trialOf(g).failed[g.common] == nil {
		return s.ready > 0
	}
	g.ready = true
	if s.waiting[g] == nil {
		return false
	}
	_, candidate := s.next(g)
	return candidate
}

// triesElsewhere reports whether an agent waits in a workspace without a failure of a version.
func (s *survey) triesElsewhere(g group) bool {
	for other := range s.waiting {
		if other.common == g.common && other.change != ownSettings {
			if _, candidate := s.next(other); candidate {
				return true
			}
		}
	}
	return false
}

// admitted counts an agent of a group as in flight.
func (s *survey) admitted(key types.NamespacedName, g group) {
	s.inFlight++
	s.inFlightOnline++
	if g.change == ownSettings {
		return
	}
	s.all.tried[g.common]++
	s.online.tried[g.common]++
	if s.confirmed[g.common] == 0 {
		s.all.first[g.common], s.online.first[g.common] = key, key
	}
}

// failedWith returns the agents that failed to update to a version, sorted by name.
func (r *rollout) failedWith(common string) (names []types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, failed := range r.inFlight {
		if failed && r.agents[key].sent.common == common {
			names = append(names, key)
		}
	}
	slices.SortFunc(names, compare)
	return names
}
