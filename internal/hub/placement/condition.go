package placement

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// maxListed limits the texts, and maxNames the members, listed in a message.
	maxListed, maxNames = 3, 5
	// maxMessage limits the length of a member's message.
	maxMessage = 500
)

// summaryReasons maps the reasons of members' conditions to the reasons of their placement. Other
// reasons are the same.
var summaryReasons = map[string]string{
	reasons.AllWorkSynced: reasons.WorkSynchronized, reasons.SyncWorkFailed: reasons.WorkNotSynchronizedYet,
	reasons.AllWorkHaveBeenApplied: reasons.ApplySucceeded, reasons.NotAllWorkHaveBeenApplied: reasons.ApplyFailed,
	reasons.AllWorkAreAvailable: reasons.ResourceAvailable, reasons.NotAllWorkAreAvailabilityTrackable: reasons.ResourceAvailable,
	reasons.NotAllWorkAreAvailable:     reasons.ResourceNotAvailableYet,
	reasons.AllWorkHaveDiffReported:    reasons.DiffReportingCompleted,
	reasons.NotAllWorkHaveDiffReported: reasons.DiffReportingIncompleteOrFailed,
}

// ofPlacement returns the condition of a placement for a condition of its members.
func (c condition) ofPlacement() condition {
	c.reason = cmp.Or(summaryReasons[c.reason], c.reason)
	return c
}

// condition is a condition without type and times. The zero condition means none.
type condition struct {
	status          metav1.ConditionStatus
	reason, message string
}

// as returns the condition in the API's form, with a message short enough to be stored.
func (c condition) as(kind string, generation int64, now time.Time) metav1.Condition {
	return metav1.Condition{
		Type: kind, Status: c.status, Reason: c.reason, Message: kube.Clip(c.message, kube.MaxMessage), ObservedGeneration: generation,
		LastTransitionTime: metav1.NewTime(now),
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
