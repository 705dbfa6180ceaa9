package agentbundle

import (
	"math/bits"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// stoppingShare is which part of the agents that have tried a version must have failed before the
	// version is sent to no others: a tenth.
	stoppingShare = 10
	// listedFailures bounds how many agents that failed are named.
	listedFailures = 10
)

// survey is what the updates in flight mean for those who wait. No single workspace stops the
// others: its tenants choose the registry, the resources and the place of their agents, and what
// their clusters report. Where a hub has agents in one workspace only, that one counts.
type survey struct {
	*rollout
	budget int
	// inFlight take up the budget, inFlightOnline what of it those have that can only harm themselves.
	inFlight, inFlightOnline int
	// all is the trial of a version among all agents, online among those that still beat.
	all, online trial
	// silent are the agents that fell silent during their update.
	silent failures
}

// failures are agents whose update failed.
type failures struct {
	count int
	// first of them by name.
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

// trial is how versions do that were sent and not confirmed, each by its common part.
type trial struct {
	// first is who tries a version, tried how many do, the failed ones among them.
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

// first is the one of two names that comes first; the other may be none.
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
			continue // it fell silent with a version that nobody is sent any more, and gets another when it returns
		}
		if !failed && a.online {
			s.inFlightOnline++
		}
		switch {
		case failed && !a.online:
			s.silent.add(key) // it may have fallen silent because of its update
		case !failed:
			s.inFlight++
		}
		if a.before == common {
			continue // only its own settings are new, and cannot be wrong with others
		}
		s.all.add(key, common, failed && (a.online || r.confirmed[common] == 0))
		if a.online {
			s.online.add(key, common, failed)
		}
	}
	if s.silent.count > 0 && !s.spread(&s.silent) {
		s.silent.count = min(s.silent.count, s.budget-1) // one workspace uses up nobody else's turn
	}
	s.inFlight += s.silent.count
	return s
}

// spread reports whether failures are of more than one workspace, or of the only one there is.
func (s *survey) spread(f *failures) bool { return len(f.workspaces) > 1 || len(s.workspaces) == 1 }

// stop returns the failures that stop a version for a group; nil if it is sent on.
func (s *survey) stop(g group) *failures {
	if g.change != joining && s.silent.count >= s.budget {
		return &s.silent // they have used the budget up
	}
	t, common := s.trialOf(g), g.common
	f := t.failed[common]
	if f == nil || !s.spread(f) || f.count*stoppingShare < t.tried[common]+s.confirmed[common] {
		return nil
	}
	return f
}

// next returns the agent of a group that is admitted next. A version that nobody has confirmed is
// tried in no workspace in which it has failed.
func (s *survey) next(g group) (types.NamespacedName, bool) {
	failed := s.trialOf(g).failed[g.common]
	for _, key := range s.waiting[g].keys {
		if failed == nil || s.confirmed[g.common] > 0 || g.change == ownSettings || !failed.workspaces[key.Namespace] {
			return key, true
		}
	}
	return types.NamespacedName{}, false
}

// trialOf is the trial that counts for a group: who joins has nothing to lose by what made another
// agent fall silent.
func (s *survey) trialOf(g group) trial {
	if g.change == joining {
		return s.online
	}
	return s.all
}

// result returns whether the next agent of a group is admitted, or why the group waits.
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
	if f.count > 1 { // rounded, so that a thousand failures are not a thousand writes for each who waits
		d.failed = 1 << (bits.Len(uint(f.count)) - 1)
	}
	return d
}

// readier reports whether a ready agent is fit to try a version before those of a group.
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

// triesElsewhere reports whether an agent of a workspace in which a version has not failed waits.
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

// failedWith names the agents whose update to a version failed, in order of their names.
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
