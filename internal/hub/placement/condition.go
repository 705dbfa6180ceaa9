package placement

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/internal/kube"
)

// Reasons of conditions.
const (
	reasonFulfilled      = "SchedulingPolicyFulfilled"
	reasonUnfulfilled    = "SchedulingPolicyUnfulfilled"
	reasonInvalidPolicy  = "InvalidPolicy"
	reasonInvalid        = "InvalidResourceSelectors"
	reasonFull           = "WorkFull"
	reasonRolloutDone    = "RolloutStarted"
	reasonRolloutWaits   = "RolloutNotStartedYet"
	reasonNoOverride     = "NoOverrideSpecified"
	reasonOverridden     = "OverriddenSucceeded"
	reasonNotOverridden  = "OverriddenFailed"
	reasonSynced         = "WorkSynchronized"
	reasonNotSynced      = "WorkNotSynchronizedYet"
	reasonApplied        = "AllWorkHaveBeenApplied"
	reasonApplyPending   = "ApplyPending"
	reasonNotApplied     = "NotAllWorkHaveBeenApplied"
	reasonAvailable      = "AllWorkAreAvailable"
	reasonNotAvailable   = "NotAllWorkAreAvailable"
	reasonAvailableLater = "AvailabilityPending"
	reasonUntrackable    = "NotAllWorkAreAvailabilityTrackable"
	reasonReported       = "AllWorkHaveBeenCompared"
	reasonNotReported    = "NotAllWorkHaveBeenCompared"
	reasonReportPending  = "ComparisonPending"
	reasonKubeFleetLeft  = "KubeFleetLeftovers"
	reasonSupported      = "Supported"
	reasonUnsupported    = "FieldsNotSupported"
	reasonCopied         = "StatusSyncSucceeded"
	reasonNotCopied      = "StatusSyncFailed"
)

const (
	// maxListed is how many of many texts, and maxNames how many members, a message lists.
	maxListed, maxNames = 3, 5
	// maxMessage is how long the message of a member may be.
	maxMessage = 500
)

// condition is a condition without type and times. The zero condition is none.
type condition struct {
	status          metav1.ConditionStatus
	reason, message string
}

// as returns the condition as the API has it, with a message that can be stored.
func (c condition) as(kind string, generation int64, now time.Time) metav1.Condition {
	return metav1.Condition{
		Type: kind, Status: c.status, Reason: c.reason, Message: kube.Clip(c.message, kube.MaxMessage), ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now),
	}
}

// worst returns the first of two conditions that is False, or else Unknown.
func (c condition) worst(other condition) condition {
	severity := map[metav1.ConditionStatus]int{metav1.ConditionUnknown: 1, metav1.ConditionFalse: 2}
	if severity[other.status] > severity[c.status] {
		return other
	}
	return c
}

// list names the first of many texts.
func list(all []string) string { return kube.JoinTexts(all[:min(maxListed, len(all))], len(all)) }

// listNames names the first of many members.
func listNames(targets []target) string {
	var names []string
	for _, t := range targets[:min(maxNames, len(targets))] {
		names = append(names, t.name)
	}
	return kube.JoinNames(names, len(targets))
}

func andMore(text string, more int) string {
	if more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

// clip shortens a message of an agent.
func clip(message string) string { return kube.Clip(message, maxMessage) }
