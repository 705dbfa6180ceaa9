package kube

import (
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
)

// longestWait is how long a controller waits at most without a look at the clock.
const longestWait = time.Hour

// At is the result of a reconcile that is due again at a time. It comes again after an hour at the latest, because a timer stands still while
// its machine is suspended.
func At(due, now time.Time) ctrl.Result {
	return ctrl.Result{RequeueAfter: min(max(due.Sub(now), time.Millisecond), longestWait)}
}
