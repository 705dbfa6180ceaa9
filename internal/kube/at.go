package kube

import (
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
)

// longestWait is how long a controller waits at most before it reads the clock again.
const longestWait = time.Hour

// At is the result of a reconcile that is due again at a time. The reconcile is repeated after an hour at the latest, because a timer stands still
// while its machine is suspended.
func At(due, now time.Time) ctrl.Result {
	return ctrl.Result{RequeueAfter: min(max(due.Sub(now), time.Millisecond), longestWait)}
}

// Earlier is the first of two times, of which each may be zero for never.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
