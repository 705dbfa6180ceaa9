package agentbundle

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// The life of the agent of a Cluster, as the condition AgentUpToDate and its reason tell it:
//
//	              the desired version changes
//	UpToDate ─────────────────────────────────► WaitingForTurn ◄──► RolloutStopped (by an update that failed)
//	   ▲                                              │ admitted: its Bundle is written
//	   │                                              ▼
//	   └── confirmed: BundleDeployment ready ───── Updating ── 5 min, or an error ──► DidNotComeBack (failed)
//
// From its Bundle being written until its BundleDeployment is ready with that, an update is in
// flight. An agent whose update is in flight is sent a newer version at once. An agent that is
// offline is sent nothing until it returns.

// State is where the agent of a Cluster stands; it is the reason of the condition.
type State string

// The states of agents that the hub manages.
const (
	UpToDate       State = "UpToDate"
	Updating       State = "Updating"
	WaitingForTurn State = "WaitingForTurn"
	RolloutStopped State = "RolloutStopped"
	DidNotComeBack State = "DidNotComeBack"
	Offline        State = "Offline"
	// send: the desired version is written to the Bundle now.
	send State = "Send"
)

// The states of agents that the hub leaves alone.
const (
	// NotManaged: the Cluster has the label.
	NotManaged State = "NotManaged"
	// SwitchedOff: the settings say that the hub manages no agents.
	SwitchedOff State = "SwitchedOff"
	// NotJoined: no agent has reported yet.
	NotJoined State = "NotJoined"
	// ForeignAgent: the agent is not Muster's.
	ForeignAgent State = "ForeignAgent"
	// SharedCredential: the agent uses the credential of a Rancher Fleet agent, which may be back at
	// any time and would deploy the Bundle.
	SharedCredential State = "SharedCredential"
	// CannotBeManaged: the agent does not deploy, or is of a version that does not know
	// how to replace itself.
	CannotBeManaged State = "CannotBeManaged"
	// Paused: nothing is deployed on the Cluster.
	Paused State = "Paused"
	// NameTaken: a user's Bundle has the name.
	NameTaken State = "NameTaken"
)

// confirmTimeout is how long an update may be in flight before it has failed.
const confirmTimeout = 5 * time.Minute

// version identifies what an agent is made of by two digests: of what is the same for all agents of
// the hub, and of its own settings.
type version struct{ common, own string }

func (v version) String() string {
	if v == (version{}) {
		return ""
	}
	return v.common + "." + v.own
}

// agent is what was observed of the agent of a Cluster.
type agent struct {
	// unmanaged says why the hub leaves the agent alone; empty if it manages the agent.
	unmanaged State
	// online says that the agent beats, lost that it fell silent; a hub that has just started knows
	// neither. ready is the condition of the Cluster.
	online, lost, ready bool
	// desired is the version that the agent should have, sent the one that its Bundle holds since
	// sentAt; none if there is no Bundle, or somebody changed it.
	desired, sent version
	sentAt        time.Time
	// confirmed says that the BundleDeployment is ready with the version that was sent, failure what
	// the agent says is wrong with it.
	confirmed bool
	failure   string
	// before is the common part of the version that the agent confirmed last, before the one that
	// was sent; "" if none.
	before string
}

// sending is the agent after its desired version was sent.
func (a agent) sending(now time.Time) agent {
	if a.confirmed {
		a.before = a.sent.common
	}
	a.sent, a.sentAt, a.confirmed, a.failure = a.desired, now, false, ""
	return a
}

// inFlight says whether a version was sent that the agent has not confirmed.
func (a agent) inFlight() bool { return a.unmanaged == "" && a.sent != version{} && !a.confirmed }

// failed says whether an update failed. An update that is no longer desired cannot fail, because a
// newer version follows it; unless the agent fell silent.
func (a agent) failed(now time.Time) bool {
	return a.inFlight() && (a.sent == a.desired || a.lost) && (a.failure != "" || !now.Before(a.sentAt.Add(confirmTimeout)))
}

// decision is where an agent stands, which other agent that is because of, and when time
// alone may change it.
type decision struct {
	state  State
	behind types.NamespacedName
	// failed is how many updates have failed, rounded down to a power of two; zero for one or none.
	failed int
	wake   time.Time
}

// decide says where an agent stands as far as that does not depend on others; without a state the
// agent waits to be admitted.
func (a agent) decide(now time.Time) decision {
	switch {
	case a.unmanaged != "":
		return decision{state: a.unmanaged}
	case a.sent == a.desired && a.confirmed:
		return decision{state: UpToDate}
	case a.sent == a.desired && a.failed(now):
		return decision{state: DidNotComeBack}
	case a.sent == a.desired:
		return decision{state: Updating, wake: a.sentAt.Add(confirmTimeout)}
	case a.lost && a.inFlight() && !a.failed(now):
		return decision{state: Offline, wake: a.sentAt.Add(confirmTimeout)} // then it may stop others
	case a.lost:
		return decision{state: Offline}
	case !a.online:
		return decision{state: WaitingForTurn}
	case a.inFlight():
		return decision{state: send}
	}
	return decision{}
}
