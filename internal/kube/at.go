package kube

import (
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
)

// longestWait is the longest time of a controller between two looks at the clock.
const longestWait = time.Hour

// At returns the result of a reconcile due again at a time. The reconcile repeats after at most an
// hour, because timers stop while the machine is suspended.
func At(due, now time.Time) ctrl.Result {
	return ctrl.Result{RequeueAfter: min(max(due.Sub(now), time.Millisecond), longestWait)}
}

// Earlier returns the first of two times. A zero time means never.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
