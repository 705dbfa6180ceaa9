// Package updaterun reads the status of staged update runs, and reads and approves the requests to
// approve their stages, for the hub and the user interfaces.
package updaterun

import (
	"k8s.io/apimachinery/pkg/api/meta"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// Ended reports whether a run has succeeded, has failed, or can never be initialized.
func Ended(status placement.UpdateRunStatus) bool {
	return meta.FindStatusCondition(status.Conditions, placement.ConditionSucceeded) != nil || Refused(status)
}

// Refused reports whether a run can never be initialized.
func Refused(status placement.UpdateRunStatus) bool {
	return status.StagedUpdateStrategySnapshot != nil && meta.IsStatusConditionFalse(status.Conditions, placement.ConditionInitialized)
}
