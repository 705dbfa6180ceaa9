package kube

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// MaxMessage is the maximum number of bytes in the message of a condition from the hub: the status
// must not grow too large to store.
const MaxMessage = 8 << 10

// Condition returns a fleet.cattle.io condition with the status True or False. It clips the
// message.
func Condition(kind string, ok bool, reason, message string) fleet.Condition {
	status := corev1.ConditionFalse
	if ok {
		status = corev1.ConditionTrue
	}
	return fleet.Condition{Type: kind, Status: status, Reason: reason, Message: Clip(message, MaxMessage)}
}

// SetCondition sets a condition in the list. It updates the times only if the condition changed.
func SetCondition(conditions []fleet.Condition, now time.Time, condition fleet.Condition) []fleet.Condition {
	stamp := now.UTC().Format(time.RFC3339)
	condition.LastUpdateTime, condition.LastTransitionTime = stamp, stamp
	for i, old := range conditions {
		if old.Type != condition.Type {
			continue
		}
		if old.Status == condition.Status {
			condition.LastTransitionTime = old.LastTransitionTime
			if old.Reason == condition.Reason && old.Message == condition.Message {
				return conditions
			}
		}
		conditions[i] = condition
		return conditions
	}
	return append(conditions, condition)
}

// RemoveCondition removes the condition of a type from the list.
func RemoveCondition(conditions []fleet.Condition, kind string) []fleet.Condition {
	return slices.DeleteFunc(conditions, func(c fleet.Condition) bool { return c.Type == kind })
}

// FindCondition returns the condition of a type, or nil.
func FindCondition(conditions []fleet.Condition, kind string) *fleet.Condition {
	for i := range conditions {
		if conditions[i].Type == kind {
			return &conditions[i]
		}
	}
	return nil
}

// ReasonOf returns the reason of the condition of a type, or "".
func ReasonOf(conditions []fleet.Condition, kind string) string {
	if condition := FindCondition(conditions, kind); condition != nil {
		return condition.Reason
	}
	return ""
}
