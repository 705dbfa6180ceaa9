package agentbundle

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// The life of the agent of a Cluster, as the condition AgentUpToDate and its reason tell it. An agent is *told* a version when its Bundle is
// written, and is *back* when its BundleDeployment is ready with that.
//
//	              another version is wanted
//	UpToDate ──────────────────────────────► WaitingForTurn ◄──► RolloutStopped
//	   ▲                                          │ its turn: told
//	   └──────────────── back ────────────── Updating ──5 min──► DidNotComeBack
//
// Whoever is not back may always be told something newer. An agent that is offline is told when it returns.

// State is where the agent of a Cluster stands; it is the reason of the condition.
type State string

// The states.
const (
	UpToDate       State = "UpToDate"
	Updating       State = "Updating"
	WaitingForTurn State = "WaitingForTurn"
	RolloutStopped State = "RolloutStopped"
	DidNotComeBack State = "DidNotComeBack"
	// Offline: it is told when it is back.
	Offline State = "Offline"
	// tell: it is told now.
	tell State = "Tell"

	// NotManaged: the Cluster has the label.
	NotManaged State = "NotManaged"
	// SwitchedOff: the settings say that the hub manages no agents.
	SwitchedOff State = "SwitchedOff"
	// NotJoined: no agent was ever heard of.
	NotJoined State = "NotJoined"
	// ForeignAgent: it is not Muster's.
	ForeignAgent State = "ForeignAgent"
	// CannotBeManaged: it does not deploy, or is of a version that does not know how to replace itself.
	CannotBeManaged State = "CannotBeManaged"
	// Paused: nothing is deployed on the Cluster.
	Paused State = "Paused"
	// NameTaken: a user's Bundle stands at the name.
	NameTaken State = "NameTaken"
)

const (
	// patience is how long an agent that was told may take to be back.
	patience = 5 * time.Minute
	// part is how many agents there are for each that may be away at a time.
	part = 10
)

// version tells what an agent is made of: what is the same for all agents of the hub, and its own settings.
type version struct{ common, own string }

func (v version) String() string {
	if v == (version{}) {
		return ""
	}
	return v.common + "." + v.own
}

func parseVersion(text string) version {
	common, own, _ := strings.Cut(text, ".")
	return version{common, own}
}

// member is what is known of the agent of a Cluster.
type member struct {
	// unmanaged says why the hub leaves it alone; empty if it does not.
	unmanaged State
	// online says that it beats, lost that it fell silent; neither is known of a hub that has just started. well says that nothing at all is
	// wrong with the Cluster.
	online, lost, well bool
	// wanted is what it should be, told what it was told last, and when; none if its Bundle is not there or was changed by hand.
	wanted, told version
	toldAt       time.Time
	// back says that what it was told is in place and ready, failure what it says is wrong.
	back    bool
	failure string
}

// away says whether it was told something and is not back.
func (m member) away() bool { return m.unmanaged == "" && m.told != version{} && !m.back }

// overdue says whether it should be back. One that should be something else by now is told that instead, unless it fell silent.
func (m member) overdue(now time.Time) bool {
	return m.away() && (m.told == m.wanted || m.lost) && (m.failure != "" || !now.Before(m.toldAt.Add(patience)))
}

// verdict is where an agent stands, because of which other one, and when time alone may change that.
type verdict struct {
	state  State
	behind types.NamespacedName
	wake   time.Time
}

// standing is the verdict about an agent that does not depend on others; without a state it needs a turn.
func (m member) standing(now time.Time) verdict {
	switch {
	case m.unmanaged != "":
		return verdict{state: m.unmanaged}
	case m.told == m.wanted && m.back:
		return verdict{state: UpToDate}
	case m.told == m.wanted && m.overdue(now):
		return verdict{state: DidNotComeBack}
	case m.told == m.wanted:
		return verdict{state: Updating, wake: m.toldAt.Add(patience)}
	case m.lost && m.away() && !m.overdue(now):
		return verdict{state: Offline, wake: m.toldAt.Add(patience)} // it may stop others then
	case m.lost:
		return verdict{state: Offline}
	case !m.online:
		return verdict{state: WaitingForTurn}
	case m.away():
		return verdict{state: tell}
	}
	return verdict{}
}

// survey is what matters of all agents to each that needs a turn.
type survey struct {
	limit int
	// away are those that hold a slot; ownAway are those of them that are online and expected back, silent those that are not expected back.
	away, ownAway, silent int
	// proven are common parts with which an agent is back.
	proven map[string]bool
	// of all agents, and of those online: one that joins has nothing to lose by what made another one fall silent.
	all, online trial
	// anyWell says that there is an agent to try something new on first.
	anyWell bool
}

// trial is how something new for all does.
type trial struct {
	// first is who tries a common part that is not proven.
	first map[string]types.NamespacedName
	// stopped is who did not come back.
	stopped types.NamespacedName
}

func (t *trial) add(key types.NamespacedName, common string, stops bool) {
	t.first[common] = first(key, t.first[common])
	if stops {
		t.stopped = first(key, t.stopped)
	}
}

// plan says of every agent where it stands, and who may be told now. It is pure.
func plan(members map[types.NamespacedName]member, now time.Time) map[types.NamespacedName]verdict {
	verdicts := make(map[types.NamespacedName]verdict, len(members))
	var pending []types.NamespacedName
	for key, m := range members {
		v := m.standing(now)
		if v.state == "" {
			pending = append(pending, key)
		}
		verdicts[key] = v
	}
	if len(pending) == 0 {
		return verdicts
	}
	slices.SortFunc(pending, func(a, b types.NamespacedName) int {
		if members[a].well != members[b].well {
			if members[a].well {
				return -1
			}
			return 1
		}
		return compare(a, b)
	})
	s := look(members, now)
	for _, key := range pending {
		verdicts[key] = s.admit(key, members[key])
	}
	return verdicts
}

func compare(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func look(members map[types.NamespacedName]member, now time.Time) *survey {
	s := &survey{proven: map[string]bool{}}
	s.all.first, s.online.first = map[string]types.NamespacedName{}, map[string]types.NamespacedName{}
	managed := 0
	for _, m := range members {
		if m.unmanaged == "" {
			managed++
			s.anyWell = s.anyWell || m.online && m.well
			s.proven[m.told.common] = s.proven[m.told.common] || m.back && m.online
		}
	}
	s.limit = max(1, managed/part)
	var silence types.NamespacedName
	for key, m := range members {
		if !m.away() || m.lost && m.told.common != m.wanted.common {
			continue // one that fell silent with what nobody is told any more gets the new when it returns
		}
		overdue := m.overdue(now)
		if !overdue && m.online {
			s.ownAway++
		}
		if !overdue || !m.online {
			s.away++ // one that fell silent may have done so because of what it was told
		}
		if overdue && !m.online {
			s.silent++
			silence = first(key, silence)
		}
		s.all.add(key, m.told.common, overdue && (m.online || !s.proven[m.told.common]))
		if m.online {
			s.online.add(key, m.told.common, overdue)
		}
	}
	if s.silent >= s.limit {
		s.all.stopped = first(silence, s.all.stopped) // nobody gets a slot any more
	}
	return s
}

// first is the one of two that comes first; the other may be none.
func first(key, other types.NamespacedName) types.NamespacedName {
	if other.Name == "" || compare(key, other) < 0 {
		return key
	}
	return other
}

// admit decides about one that is online and needs a turn, and counts it if it gets one.
func (s *survey) admit(key types.NamespacedName, m member) verdict {
	common := m.wanted.common
	proven := s.proven[common]
	if m.told.common == common || m.told == (version{}) && proven {
		// Only its own settings are new, or it is: that is nothing that could be wrong with all.
		if s.ownAway >= s.limit {
			return verdict{state: WaitingForTurn}
		}
		s.ownAway++
		s.away++
		return verdict{state: tell}
	}
	t, abroad := s.all, s.away
	if m.told == (version{}) {
		t, abroad = s.online, s.ownAway
	}
	trying, tried := t.first[common]
	switch {
	case t.stopped.Name != "":
		return verdict{state: RolloutStopped, behind: t.stopped}
	case !proven && tried:
		return verdict{state: WaitingForTurn, behind: trying}
	case !proven && !m.well && s.anyWell:
		return verdict{state: WaitingForTurn}
	case abroad >= s.limit:
		return verdict{state: WaitingForTurn}
	}
	s.away++
	s.ownAway++
	if !proven {
		s.all.first[common], s.online.first[common] = key, key
	}
	return verdict{state: tell}
}
