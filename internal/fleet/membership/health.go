package membership

import clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"

// Streak counts consecutive results of a health check that differ from the shown health.
type Streak struct {
	// Unhealthy is the shown health. It changes only after enough other results in a row.
	Unhealthy bool
	other     int32
}

// Add counts a result, and returns the streak after it. A missing threshold is one.
func (s Streak) Add(failed bool, thresholds *clusterv1beta1.HealthCheck) Streak {
	if failed == s.Unhealthy {
		return Streak{Unhealthy: s.Unhealthy}
	}
	needed := int32(1)
	if thresholds != nil && failed {
		needed = thresholds.FailureThreshold
	} else if thresholds != nil {
		needed = thresholds.SuccessThreshold
	}
	if s.other++; s.other < needed {
		return s
	}
	return Streak{Unhealthy: failed}
}

// Pending reports whether the last result differs from the shown health.
func (s Streak) Pending() bool { return s.other > 0 }
