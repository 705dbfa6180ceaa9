package registration

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/kube"
)

// The holder of a token may send any number of requests. The hub bounds:
//
//   - Refused and waiting requests, per token and per workspace. An excess request shows the cause
//     in its status. The hub deletes it after a minute, and its agent creates it again. A grantable
//     request is never in excess.
//   - The requests of each cluster by an account of many clusters: to a part of the account's
//     limit. They do not count for the workspace, because other tokens share it. A request signed
//     with the key of a member counts for the member only.
//   - Clusters created for requests of a token and still without a heartbeat. The next request
//     waits until one of them sends a heartbeat or is deleted.
//   - The requests in this queue, per token.
//
// Above twice the limit, the hub deletes requests unread.

const (

	// tooManyLife is the life of an excess request: long enough for its agent to read it.
	tooManyLife = time.Minute
	// unreadFactor multiplies the limit: with this many requests, the hub deletes further ones unread.
	unreadFactor = 2
)

// others counts the other queued and waiting requests of the same token, and of its workspace. If
// the token is shared, it counts the requests of the same cluster instead.
type others struct {
	queued, waiting, waitingInWorkspace, waitingOfClient int
	// shared: many clusters use the token.
	shared bool
	// place is the category of the request itself, unless the request exceeds a limit.
	place cost
}

// limit refuses an excess request.
func limit(d decision, o observed, have others, most settings.Registration, now time.Time) decision {
	var why string
	bound := func(have, most int, whose, setting string) {
		if most > 0 && have >= most && why == "" {
			why = fmt.Sprintf("%d requests of %s wait or were refused: approve, deny or delete them (kubectl -n %s get clusterregistrations), or "+
				"raise registration.%s of the hub's chart",
				have, whose, o.workspace, setting)
		}
	}
	costs := costOfState(d.state, d.reason)
	// A request keeps its place. Otherwise several concurrent requests would all give way to each
	// other.
	if costs == have.place {
		return d
	}
	switch costs {
	case queued:
		bound(have.queued, most.MaxQueuedPerToken, o.asker(), "maxQueuedPerToken")
	case waiting:
		if have.shared {
			bound(have.waitingOfClient, partOf(most.MaxWaitingPerToken), "this cluster", "maxWaitingPerToken")
		}
		bound(have.waiting, most.MaxWaitingPerToken, o.asker(), "maxWaitingPerToken")
		bound(have.waitingInWorkspace, most.MaxWaitingPerWorkspace, "workspace "+o.workspace, "maxWaitingPerWorkspace")
	case free, foreign: // they take no place
	}
	if why == "" {
		return d
	}
	unread := func(have, most int) bool { return most > 0 && have >= unreadFactor*most }
	end := o.created.Add(tooManyLife)
	if !now.Before(end) || unread(have.waiting, most.MaxWaitingPerToken) || unread(have.waitingInWorkspace, most.MaxWaitingPerWorkspace) ||
		have.shared && unread(have.waitingOfClient, partOf(most.MaxWaitingPerToken)) {
		return decision{action: remove, message: why}
	}
	return decision{state: fleet.RegistrationWaiting, reason: reasons.TooManyRequests, wake: end,
		message: fmt.Sprintf("%s; this one (%s) is deleted in a minute, and its agent sends another", why, d.reason)}
}

// partOf returns the number of places of a shared account for one cluster; zero for no limit.
func partOf(most int) int {
	if most <= 0 {
		return 0
	}
	return max(most/sharePart, 1)
}

// asker describes the origin of a request.
func (o observed) asker() string {
	if o.tokenName == "" {
		return "agents in workspace " + o.workspace + " that name no token"
	}
	return "ClusterRegistrationToken " + o.workspace + "/" + o.tokenName
}

// tooManyClusters waits for the heartbeats of other new Clusters.
func tooManyClusters(o observed, most int) decision {
	return decision{state: fleet.RegistrationWaiting, reason: reasons.TooManyNewClusters, wake: o.end(), message: fmt.Sprintf(
		"%d new Clusters of %s have not sent a heartbeat yet: registration continues when one does or is deleted, or raise "+
			"registration.maxNewClustersPerToken of the hub's chart", most, o.asker())}
}

// enforceLimits replaces a decision beyond the settings' limits for the holder of a token.
func (c *Controller) enforceLimits(r *fleet.ClusterRegistration, o observed, d decision, now time.Time) decision {
	most := c.Config.Current().Registration
	if d.action == createCluster &&
		!c.tracker.reserve(types.NamespacedName{Namespace: r.Namespace, Name: d.cluster}, tokenOf(r), most.MaxNewClustersPerToken) {
		d = tooManyClusters(o, most.MaxNewClustersPerToken)
	}
	return limit(d, o, c.tracker.others(r), most, now)
}

// warnUnread emits an Event on a token after requests were deleted without an answer.
func (c *Controller) warnUnread(o observation, d decision) {
	if o.registrationToken != nil && d.message != "" {
		c.Recorder.Eventf(o.registrationToken, nil, corev1.EventTypeWarning, reasons.TooManyRequests,
			"Register", "the hub deletes requests without an answer: too many wait or were refused")
	}
}

// awaitManager leaves a request with a label for another manager alone, and deletes it if the
// manager does not take it up.
func (c *Controller) awaitManager(ctx context.Context, r *fleet.ClusterRegistration) (ctrl.Result, error) {
	if takenUp(r) {
		return ctrl.Result{}, nil
	}
	most, now := c.Config.Current().Registration, c.Clock.Now()
	end := r.CreationTimestamp.Add(most.RequestLifetime)
	if tooMany := most.MaxQueuedPerToken > 0 && c.tracker.foreign(r) > most.MaxQueuedPerToken; !tooMany && now.Before(end) {
		return kube.At(end, now), nil
	}
	ctrl.LoggerFrom(ctx).Info("Deleting a registration request for another manager that ignores it", "label", fleet.LabelClusterManagement,
		"manager", kube.Clip(r.Labels[fleet.LabelClusterManagement], maxFailure))
	return ctrl.Result{}, c.remove(ctx, r)
}
