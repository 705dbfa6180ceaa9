// Package view is the common view of the fleet's objects in all user interfaces. It returns an
// object's row in a table, its problem, and its related objects.
//
// Its invariant: view changes nothing, and reads with the client of the caller, so with the rights
// of the user.
package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/facts"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/fleet/updaterun"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/ui/explain"
)

// Nothing stands in an empty column.
const Nothing = "-"

// States of objects without a state of their own.
const (
	StateReady    = "Ready"
	StateNotReady = "NotReady"
	StateLeaving  = "Leaving"
	StateDeleting = "Deleting"
	// StateQuarantined is a member with the single right to send heartbeats and reports.
	StateQuarantined = reasons.Quarantined
	StateNew         = "New" // the hub has not reconciled it yet

	// StateUsedUp is a token at its limit of Clusters.
	StateUsedUp = "UsedUp"

	// StateWaitingForApproval is a Bundle with a change that a user must confirm.
	StateWaitingForApproval = "WaitingForApproval"
	// StateWaitingForRun is a placement changed only by a staged update run.
	StateWaitingForRun = "WaitingForRun"
)

// The columns of the tables, in the order of Row. MemberWide lists the columns of members shown
// only on request.
var (
	MemberColumns = []string{
		"NAME", "KIND", columnState, "NODES", "BUNDLES", "VERSION", "LAST-SEEN", "AGENT", "EXPIRES",
		"DISPLAY-NAME", "PROVIDER", "REGION", "DISTRIBUTION", columnWhy,
	}
	MemberWide       = []string{"AGENT", "EXPIRES", "DISPLAY-NAME", "PROVIDER", "REGION", "DISTRIBUTION"}
	TokenColumns     = []string{"NAME", columnState, "EXPIRES", "REGISTRATIONS", "LAST-USED", "AGE", columnWhy}
	RequestColumns   = []string{"NAME", columnState, "CLUSTER", "CLIENT-ID", "TOKEN", "LABELS", "AGE", columnWhy}
	RequestWide      = []string{"TOKEN", "LABELS"}
	BundleColumns    = []string{"NAME", columnState, "READY", "AGE", columnWhy}
	GitRepoColumns   = []string{"NAME", columnState, "COMMIT", "BUNDLES", "READY", "AGE", columnWhy}
	HelmOpColumns    = []string{"NAME", columnState, "CHART", "VERSION", "READY", "AGE", columnWhy}
	PlacementColumns = []string{"NAME", "KIND", columnState, "MEMBERS", "AGE", columnWhy}
	RunColumns       = []string{"NAME", "KIND", columnState, "PLACEMENT", "STAGE", "MEMBERS", "AGE", columnWhy}
	ApprovalColumns  = []string{"NAME", "KIND", columnState, "RUN", "STAGE", "AGE"}
)

// Columns of all tables.
const (
	columnState = "STATE"
	columnWhy   = "WHY"
)

// Columns returns the columns of an object's table.
func Columns(o client.Object) []string {
	switch o.(type) {
	case *fleet.Cluster, *clusterv1beta1.MemberCluster:
		return MemberColumns
	case *fleet.ClusterRegistrationToken:
		return TokenColumns
	case *fleet.ClusterRegistration:
		return RequestColumns
	case *fleet.Bundle:
		return BundleColumns
	case *fleet.GitRepo:
		return GitRepoColumns
	case *fleet.HelmOp:
		return HelmOpColumns
	case *placement.ClusterStagedUpdateRun, *placement.StagedUpdateRun:
		return RunColumns
	case *placement.ClusterApprovalRequest, *placement.ApprovalRequest:
		return ApprovalColumns
	}
	return PlacementColumns
}

// Column returns the content of a column for an object; Nothing if the table has no such column.
func Column(o client.Object, name string, now time.Time) string {
	if i := slices.Index(Columns(o), name); i >= 0 {
		return Row(o, now)[i]
	}
	return Nothing
}

// State returns the state of an object in the table.
func State(o client.Object) string { return Column(o, columnState, time.Now()) }

// Because returns the problem of an object; Nothing if it is healthy.
func Because(o client.Object) string { return Column(o, columnWhy, time.Now()) }

// Row returns the row of an object, with all columns of its kind.
func Row(o client.Object, now time.Time) []string {
	switch o := o.(type) {
	case *fleet.Cluster:
		return clusterRow(o, now)
	case *clusterv1beta1.MemberCluster:
		return memberClusterRow(o, now)
	case *fleet.ClusterRegistrationToken:
		return tokenRow(o, now)
	case *fleet.ClusterRegistration:
		return requestRow(o, now)
	case *fleet.Bundle:
		return bundleRow(o, now)
	case *fleet.GitRepo:
		return gitRepoRow(o, now)
	case *fleet.HelmOp:
		return helmOpRow(o, now)
	case *placement.ClusterResourcePlacement:
		return placementRow(o, "ClusterResourcePlacement", &o.Status, now)
	case *placement.ResourcePlacement:
		return placementRow(o, "ResourcePlacement", &o.Status, now)
	}
	if r, is := RunOf(o); is {
		return runRow(r, now)
	}
	if a, is := updaterun.ApprovalRequestOf(o); is {
		return approvalRow(a, now)
	}
	panic(fmt.Sprintf("no table shows a %T", o)) // a mistake of the caller
}

func clusterRow(record *fleet.Cluster, now time.Time) []string {
	status := membership.ClusterStatus(&record.Status, nil)
	agent := record.Status.Agent
	return []string{
		NameOf(record), "Cluster", memberState(record, status), Or(record.Status.Display.ReadyNodes), Or(record.Status.Display.ReadyBundles),
		Or(agent.KubernetesVersion),
		lastSeen(record, status, LastSeen(record), now), Or(AgentVersion(record)), Until(Expires(record), now),
		Or(DisplayName(record)), property(record, facts.Provider), property(record, facts.Region), property(record, facts.Distribution),
		whyOfMember(record, status, status.Message, now),
	}
}

func memberClusterRow(record *clusterv1beta1.MemberCluster, now time.Time) []string {
	status := membership.MemberClusterStatus(&record.Status)
	message := status.Message
	// the earliest precondition explains most
	for _, kind := range []string{clusterv1beta1.ConditionJoined, clusterv1beta1.ConditionReadyToJoin} {
		if c := meta.FindStatusCondition(record.Status.Conditions, kind); c != nil && c.Status == metav1.ConditionFalse {
			message = c.Message
		}
	}
	return []string{
		NameOf(record), "MemberCluster", memberState(record, status), property(record, facts.NodeCount), Nothing,
		property(record, facts.KubernetesVersion),
		lastSeen(record, status, LastSeen(record), now), Or(AgentVersion(record)), Until(Expires(record), now),
		Or(DisplayName(record)), property(record, facts.Provider), property(record, facts.Region), property(record, facts.Distribution),
		whyOfMember(record, status, message, now),
	}
}

// AgentVersion returns the version of a member's agent, from the membership object.
func AgentVersion(record client.Object) string {
	if cluster, is := record.(*fleet.Cluster); is {
		return cluster.Status.Agent.Version
	}
	return record.(*clusterv1beta1.MemberCluster).Status.AgentVersion
}

// Expires returns the expiry of the credential of a member's agent, from the membership object.
func Expires(record client.Object) *metav1.Time {
	switch o := record.(type) {
	case *fleet.Cluster:
		if o.Status.Credential != nil {
			return o.Status.Credential.Expires
		}
	case *clusterv1beta1.MemberCluster:
		if o.Status.Credential != nil {
			return o.Status.Credential.Expires
		}
	}
	return nil
}

// lastSeen returns the age of the heartbeat in a membership object. In a large fleet the last write
// may be many minutes old while the member is healthy, so lastSeen returns "online" for an online
// member. For a leaving member the hub reports no such state.
func lastSeen(record client.Object, status membership.Status, at, now time.Time) string {
	if record.GetDeletionTimestamp() == nil && (status.Agent == membership.AgentOnline || status.Agent == membership.AgentUnhealthy) {
		return "online"
	}
	return Since(at, now)
}

func bundleRow(bundle *fleet.Bundle, now time.Time) []string {
	state, message := stateOf(bundle, kube.FindCondition(bundle.Status.Conditions, fleet.ConditionReady))
	if state == StateNotReady {
		state = bundleState(bundle)
	}
	return []string{NameOf(bundle), state, Or(bundle.Status.Display.ReadyClusters), Since(bundle.CreationTimestamp.Time, now), message}
}

// bundleState returns the state of an unready Bundle. For waiting states, the condition has more
// than Rancher Fleet's field: it names the other Bundle.
func bundleState(bundle *fleet.Bundle) string {
	switch reason := kube.ReasonOf(bundle.Status.Conditions, fleet.ConditionReady); reason {
	case reasons.TakeoverHeld, reasons.RemovalHeld:
		return StateWaitingForApproval
	case string(fleet.StateOutsideWindow), string(fleet.StatePaused):
		return reason
	}
	return cmp.Or(bundle.Status.Display.State, StateNotReady)
}

func placementRow(o client.Object, kind string, status *placement.PlacementStatus, now time.Time) []string {
	state := StateNew
	// each requires the one before
	for _, condition := range []string{placement.ConditionScheduled, placement.ConditionApplied, placement.ConditionAvailable} {
		c := meta.FindStatusCondition(status.Conditions, kind+condition)
		if c == nil {
			continue
		}
		if state = condition; c.Status != metav1.ConditionTrue {
			state = "Not" + condition
			break
		}
	}
	// No member changes before its staged update run, whatever the member lacks.
	started := meta.FindStatusCondition(status.Conditions, kind+placement.ConditionRolloutStarted)
	if started != nil && started.Status == metav1.ConditionUnknown && started.Reason == reasons.RolloutControlledByExternalController {
		state = StateWaitingForRun
	}
	if scheduled := meta.FindStatusCondition(status.Conditions, kind+placement.ConditionScheduled); scheduled != nil &&
		scheduled.Reason == reasons.Paused {
		state = string(fleet.StatePaused)
	}
	if o.GetDeletionTimestamp() != nil {
		state = StateDeleting
	}
	why := Why(false, status.Message)
	if state == placement.ConditionAvailable {
		why = Why(false, explain.PlacementNote(status))
	}
	return []string{NameOf(o), kind, state, Or(status.Members), Since(o.GetCreationTimestamp().Time, now), why}
}

// stateOf returns the state of an object and, if it is not ready, the message of its condition.
func stateOf(o client.Object, ready *fleet.Condition) (state, message string) {
	well := ready == nil || ready.Status == corev1.ConditionTrue
	switch {
	case o.GetDeletionTimestamp() != nil:
		state = StateDeleting
	case ready == nil:
		state = StateNew
	case well:
		state = StateReady
	default:
		state = StateNotReady
	}
	if well {
		return state, Nothing
	}
	return state, Why(false, ready.Message)
}

// Why returns a message in one line, or Nothing for a healthy object.
func Why(well bool, message string) string {
	if well {
		return Nothing
	}
	return Or(strings.Join(strings.Fields(message), " "))
}

// Or returns a text, or Nothing for an empty one.
func Or(text string) string {
	return cmp.Or(text, Nothing)
}

// Since returns the time since an event.
func Since(at, now time.Time) string {
	if at.IsZero() {
		return Nothing
	}
	return duration.HumanDuration(max(0, now.Sub(at)))
}

// Until returns the time until an event.
func Until(at *metav1.Time, now time.Time) string {
	switch {
	case at.IsZero():
		return Nothing
	case !at.After(now):
		return fmt.Sprintf("%s ago", Since(at.Time, now))
	}
	return "in " + duration.HumanDuration(at.Sub(now))
}
