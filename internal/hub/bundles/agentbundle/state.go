package agentbundle

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// The life cycle of a member's agent, shown by the condition AgentUpToDate and its reason:
//
//	              the desired version changes
//	UpToDate ─────────────────────────────────► WaitingForTurn ◄──► RolloutStopped (by a failed update)
//	   ▲                                              │ admitted: its Bundle is written
//	   │                                              ▼
//	   └── confirmed: BundleDeployment ready ───── Updating ── 5 min, or an error ──► DidNotComeBack (failed)
//
// An update is in flight from the write of its Bundle until its BundleDeployment is ready with it.
// During an update in flight, the agent receives a newer version at once. An offline agent receives
// nothing until it returns.

// State is the state of a Cluster's agent, and the reason of the condition.
type State string

// The states of agents under the hub's management.
const (
	UpToDate       State = "UpToDate"
	Updating       State = "Updating"
	WaitingForTurn State = "WaitingForTurn"
	RolloutStopped State = "RolloutStopped"
	DidNotComeBack State = "DidNotComeBack"
	Offline        State = "Offline"
	// OutsideWindow: the Schedules of the Cluster hold the desired version back.
	OutsideWindow State = "OutsideWindow"
	// send: the hub writes the desired version to the Bundle now.
	send State = "Send"
)

// The states of agents outside the hub's management.
const (
	// NotManaged: the Cluster has the opt-out label.
	NotManaged State = "NotManaged"
	// SwitchedOff: the settings turn the management of agents off.
	SwitchedOff State = "SwitchedOff"
	// NotJoined: no agent has reported yet.
	NotJoined State = "NotJoined"
	// ForeignAgent: the agent is not Muster's.
	ForeignAgent State = "ForeignAgent"
	// SharedCredential: the agent uses the credential of a Rancher Fleet agent. The other agent may
	// return at any time, and would deploy the Bundle.
	SharedCredential State = "SharedCredential"
	// CannotBeManaged: the agent does not deploy, or its version cannot replace itself.
	CannotBeManaged State = "CannotBeManaged"
	// Paused: nothing is deployed on the Cluster.
	Paused State = "Paused"
	// NameTaken: a user's Bundle has the name.
	NameTaken State = "NameTaken"
	// UpgradesRefused: the chart of a MemberCluster's agent refuses upgrades by the hub.
	UpgradesRefused State = "UpgradesRefused"
	// NoCredential: the agent of a MemberCluster keeps the token of its identity, and this identity
	// may not read the chart.
	NoCredential State = "NoCredential"
)

// confirmTimeout limits the time of an update in flight; after it the update has failed.
const confirmTimeout = 5 * time.Minute

// version identifies an agent's contents by two digests: common covers the part shared by all
// agents of the hub, own covers the agent's own settings.
type version struct{ common, own string }

func (v version) String() string {
	if v == (version{}) {
		return ""
	}
	return v.common + "." + v.own
}

// agent is the observed state of a Cluster's agent.
type agent struct {
	// unmanaged is the reason why the hub leaves the agent alone; empty if it manages the agent.
	unmanaged State
	// outside is true while the Schedules of the Cluster let nothing change.
	outside bool
	// online reports whether the agent sends heartbeats, lost whether they stopped. A newly started
	// hub knows neither. ready is the condition of the Cluster.
	online, lost, ready bool
	// desired is the version the agent should have. sent is the version in its Bundle since
	// sentAt. sent is empty if there is no Bundle, or another client changed it.
	desired, sent version
	sentAt        time.Time
	// confirmed reports whether the BundleDeployment is ready with the sent version. failure is
	// the agent's error.
	confirmed bool
	failure   string
	// before is the common part of the version confirmed before the sent one; "" if none.
	before string
}

// sending returns the agent as it is after its desired version was sent.
func (a agent) sending(now time.Time) agent {
	if a.confirmed {
		a.before = a.sent.common
	}
	a.sent, a.sentAt, a.confirmed, a.failure = a.desired, now, false, ""
	return a
}

// inFlight reports whether a version was sent but not confirmed by the agent. Outside of a window
// an agent takes no version.
func (a agent) inFlight() bool {
	return a.unmanaged == "" && !a.outside && a.sent != version{} && !a.confirmed
}

// failed reports whether an update failed. An outdated update cannot fail, because a newer version
// follows it. The exception is a lost agent.
func (a agent) failed(now time.Time) bool {
	return a.inFlight() && (a.sent == a.desired || a.lost) && (a.failure != "" || !now.Before(a.sentAt.Add(confirmTimeout)))
}

// decision is the state of an agent. behind names the agent that caused it. wake is the time when
// the decision may change without an event.
type decision struct {
	state  State
	behind types.NamespacedName
	// failed is the number of failed updates, rounded down to 2, 4, 8 and so on; zero for one or
	// none.
	failed int
	wake   time.Time
}

// decide returns the state of an agent as far as it does not depend on other agents. Without a
// state the agent waits to be admitted.
func (a agent) decide(now time.Time) decision {
	switch {
	case a.unmanaged != "":
		return decision{state: a.unmanaged}
	case a.sent == a.desired && a.confirmed:
		return decision{state: UpToDate}
	case a.outside:
		return decision{state: OutsideWindow}
	case a.sent == a.desired && a.failed(now):
		return decision{state: DidNotComeBack}
	case a.sent == a.desired:
		return decision{state: Updating, wake: a.sentAt.Add(confirmTimeout)}
	case a.lost && a.inFlight() && !a.failed(now):
		return decision{state: Offline, wake: a.sentAt.Add(confirmTimeout)} // it may then stop others
	case a.lost:
		return decision{state: Offline}
	case !a.online:
		return decision{state: WaitingForTurn}
	case a.inFlight():
		return decision{state: send}
	}
	return decision{}
}
