// Package history derives the changes in the life of a member from its status, and keeps the last
// ones there. A Cluster and a MemberCluster have the same words.
//
// History reads objects, and writes none. Its invariant: an entry costs no write of its own. It
// follows from two statuses, and is written with the second one. A flapping member adds to an
// entry, and displaces only entries of the same kind.
package history

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/facts"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
)

// maxMessage bounds the message of an entry.
const maxMessage = 256

// Reasons lists all reasons, in the order of a life.
var Reasons = []clusterv1beta1.HistoryReason{
	clusterv1beta1.HistoryApprovalRequired, clusterv1beta1.HistoryApproved, clusterv1beta1.HistoryDenied, clusterv1beta1.HistoryJoined,
	clusterv1beta1.HistoryLost, clusterv1beta1.HistoryBack, clusterv1beta1.HistoryCordoned, clusterv1beta1.HistoryDrained,
	clusterv1beta1.HistoryUncordoned, clusterv1beta1.HistoryAgentUpdated, clusterv1beta1.HistoryKubernetesUpdated,
	clusterv1beta1.HistoryMoved, clusterv1beta1.HistoryQuarantined, clusterv1beta1.HistoryQuarantineEnded, clusterv1beta1.HistoryRevoked,
	clusterv1beta1.HistoryRestored, clusterv1beta1.HistoryLeft,
}

// Change is a change in the life of a member.
type Change struct {
	Reason  clusterv1beta1.HistoryReason
	Message string
}

// State is the part of a status for comparison in the history.
type State struct {
	Agent membership.AgentState
	// Message is the sentence of the status about the agent.
	Message string
	// Revoked: a user has revoked the access, and Quarantined: a user has quarantined the member; the
	// status shows it.
	Revoked, Quarantined bool
	// RevokedBy, QuarantinedBy and IdentityBy are the users behind a new revocation, a new quarantine,
	// and the identity of a new member; empty if unknown.
	RevokedBy, QuarantinedBy, IdentityBy string
	// Seen is the last heartbeat in the status; zero if there was none.
	Seen time.Time
	// AgentVersion and KubernetesVersion are empty if unknown.
	AgentVersion, KubernetesVersion string
	// Approval is the reason of the condition about the approval; empty without one. ApprovalMessage
	// is its message.
	Approval, ApprovalMessage string
	// Route is the reason of the condition about the address of the hub.
	Route string
}

// OfCluster returns the state of a Cluster.
func OfCluster(status *fleet.ClusterStatus) State {
	member := membership.ClusterStatus(status, nil)
	approval := kube.FindCondition(status.Conditions, fleet.ConditionDeliveryApproved)
	if approval == nil {
		approval = &fleet.Condition{}
	}
	return State{
		Agent: member.Agent, Message: member.Message, Seen: status.Agent.LastSeen.Time,
		Revoked:      member.Reason == reasons.Revoked || member.Reason == reasons.Revoking,
		Quarantined:  kube.FindCondition(status.Conditions, fleet.ConditionQuarantined) != nil,
		AgentVersion: status.Agent.Version, KubernetesVersion: status.Agent.KubernetesVersion,
		Approval: approval.Reason, ApprovalMessage: approval.Message,
		Route: kube.ReasonOf(status.Conditions, fleet.ConditionHubConfigured),
	}
}

// OfMemberCluster returns the state of a MemberCluster.
func OfMemberCluster(status *clusterv1beta1.MemberClusterStatus) State {
	member := membership.MemberClusterStatus(status)
	state := State{
		Agent: member.Agent, Message: member.Message, AgentVersion: status.AgentVersion,
		Revoked:           member.Joined.Reason == reasons.Revoked || member.Joined.Reason == reasons.Revoking,
		Quarantined:       meta.FindStatusCondition(status.Conditions, clusterv1beta1.ConditionQuarantined) != nil,
		KubernetesVersion: status.Properties[facts.KubernetesVersion].Value,
	}
	if agent := clusterv1beta1.FindAgent(status.AgentStatus, clusterv1beta1.MemberAgent); agent != nil {
		state.Seen = agent.LastReceivedHeartbeat.Time
	}
	for _, condition := range status.Conditions {
		if condition.Type == clusterv1beta1.ConditionHubConfigured {
			state.Route = condition.Reason
		}
	}
	return state
}

// Changes returns the changes between two states of a member at a time, and changes in its marks
// that its history lacks.
func Changes(before, after State, record client.Object, recorded []clusterv1beta1.HistoryEntry, now time.Time) (changes []Change) {
	add := func(reason clusterv1beta1.HistoryReason, message string) {
		changes = append(changes, Change{reason, kube.Clip(message, maxMessage-len("..."))})
	}
	if before.Approval != after.Approval {
		approved(before, after, add)
	}
	if after.Revoked && !before.Revoked {
		add(clusterv1beta1.HistoryRevoked, named(after.RevokedBy)+" revoked the access of the member")
	}
	if before.Revoked && !after.Revoked && record.GetDeletionTimestamp() == nil { // the reason of a departure hides it
		add(clusterv1beta1.HistoryRestored, "a user has undone the revocation; the agent may join again")
	}
	if after.Quarantined && !before.Quarantined {
		add(clusterv1beta1.HistoryQuarantined, named(after.QuarantinedBy)+
			" quarantined the member; its agent may only send heartbeats and reports")
	}
	if before.Quarantined && !after.Quarantined {
		add(clusterv1beta1.HistoryQuarantineEnded, "the quarantine of the member ended")
	}
	if before.Agent != after.Agent && !after.Revoked {
		agent(before, after, record, now, add)
	}
	updated := func(reason clusterv1beta1.HistoryReason, of, was, is string) {
		if was != "" && is != "" && was != is {
			add(reason, fmt.Sprintf("%s has version %s, before %s", of, is, was))
		}
	}
	updated(clusterv1beta1.HistoryAgentUpdated, "the agent", before.AgentVersion, after.AgentVersion)
	updated(clusterv1beta1.HistoryKubernetesUpdated, "Kubernetes", before.KubernetesVersion, after.KubernetesVersion)
	if before.Route == reasons.Moving && after.Route == reasons.InUse {
		add(clusterv1beta1.HistoryMoved, "the agent uses the other address of the hub")
	}
	if before.Route == reasons.InUse && after.Route == reasons.FallbackInUse {
		add(clusterv1beta1.HistoryMoved, "the first address of the hub does not answer; the agent uses a further one")
	}
	if before.Route == reasons.FallbackInUse && after.Route == reasons.InUse {
		add(clusterv1beta1.HistoryMoved, "the agent uses the first address of the hub again")
	}
	marked(record, recorded, add)
	return changes
}

// named returns the name of a user on one line.
func named(user string) string { return cmp.Or(strings.Join(strings.Fields(user), " "), "a user") }

// approved adds the change of an approval.
func approved(before, after State, add func(clusterv1beta1.HistoryReason, string)) {
	switch {
	case after.Approval == reasons.ApprovalRequired:
		add(clusterv1beta1.HistoryApprovalRequired, after.ApprovalMessage)
	case before.Approval == reasons.ApprovalRequired && after.Approval != "":
		add(clusterv1beta1.HistoryApproved, "a user approved deliveries to the member")
	}
}

// agent adds the change of the agent's state. A deleted member has Left when its membership
// object is gone.
func agent(before, after State, record client.Object, now time.Time, add func(clusterv1beta1.HistoryReason, string)) {
	leaving := record.GetDeletionTimestamp() != nil
	online := after.Agent == membership.AgentOnline || after.Agent == membership.AgentUnhealthy
	switch {
	case after.Agent == membership.AgentLost && leaving:
		add(clusterv1beta1.HistoryLost, "the agent sends no heartbeats, and has not left yet")
	case after.Agent == membership.AgentLost:
		add(clusterv1beta1.HistoryLost, after.Message)
	case after.Agent == membership.AgentLeft && before.Agent != membership.AgentUnknown && !leaving:
		add(clusterv1beta1.HistoryLeft, after.Message)
	case !online:
	case before.Agent == membership.AgentLost && before.Seen.IsZero():
		add(clusterv1beta1.HistoryBack, "the agent sends heartbeats again")
	case before.Agent == membership.AgentLost:
		add(clusterv1beta1.HistoryBack, fmt.Sprintf("the agent sends heartbeats again, after %s without one",
			now.Sub(before.Seen).Round(time.Second)))
	case before.Agent == membership.AgentAwaited, before.Agent == membership.AgentAbsent, before.Agent == membership.AgentLeft,
		before.Agent == membership.AgentUnknown && before.Seen.IsZero():
		message := "the agent has joined and sends heartbeats"
		if after.IdentityBy != "" {
			message += "; " + named(after.IdentityBy) + " chose its identity"
		}
		add(clusterv1beta1.HistoryJoined, message)
	}
}

// marked adds the decisions of users about a member that its history lacks.
func marked(record client.Object, recorded []clusterv1beta1.HistoryEntry, add func(clusterv1beta1.HistoryReason, string)) {
	last := newest(recorded, clusterv1beta1.HistoryCordoned, clusterv1beta1.HistoryDrained, clusterv1beta1.HistoryUncordoned)
	shown := last == clusterv1beta1.HistoryCordoned || last == clusterv1beta1.HistoryDrained
	cordoned := membership.Cordoned(record)
	if cordoned && !shown {
		add(clusterv1beta1.HistoryCordoned, "a user keeps new deliveries from the member")
	}
	if cordoned && membership.Drained(record) && last != clusterv1beta1.HistoryDrained {
		add(clusterv1beta1.HistoryDrained, "muster drain has moved its placements to other members")
	}
	if !cordoned && shown {
		add(clusterv1beta1.HistoryUncordoned, "the member gets new deliveries again")
	}
}
