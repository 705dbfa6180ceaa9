package registration

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/kube"
)

// The holder of a token may send requests without an end. Bounded are:
//
//   - requests that were refused or wait for somebody, per token and per workspace. A request too many says so, is deleted after a minute, and made
//     again by its agent. A request that can be granted is never one too many.
//   - of requests by an account that many clusters share, those of each cluster, to a part of what
//     is allowed the account. They do not count for the workspace, in which others have tokens. A
//     request that is signed with the key of a member counts for that member only.
//   - Clusters that the hub made for requests of a token and that have not beaten. The next request waits for one of them to beat or to go.
//   - the requests that wait for that, per token.
//
// Beyond twice of what is allowed requests are deleted unread.

const (
	reasonTooManyClusters = "TooManyNewClusters"
	reasonTooManyRequests = "TooManyRequests"
	// tooManyLife is how long a request that is one too many stays, for its agent to read.
	tooManyLife = time.Minute
	// unreadFactor times what is allowed is where requests are deleted unread.
	unreadFactor = 2
)

// others counts the other requests that are queued or wait: those of the same token, and those of
// its workspace, or where the token is shared, those of the same cluster.
type others struct {
	queued, waiting, waitingInWorkspace, waitingOfClient int
	// shared: many clusters use the token.
	shared bool
	// place is what the request itself counts as, unless it is one too many.
	place cost
}

// limit refuses a request that would be one too many.
func limit(d decision, o observed, have others, most settings.Registration, now time.Time) decision {
	var why string
	bound := func(have, most int, whose, setting string) {
		if most > 0 && have >= most && why == "" {
			why = fmt.Sprintf("%d requests of %s wait or were refused already: see to them (kubectl -n %s get clusterregistrations), or raise registration.%s of the hub's chart",
				have, whose, o.workspace, setting)
		}
	}
	costs := costOfState(d.state, d.reason)
	// A request keeps the place that it has. Otherwise all of several that came at once would give way to each other.
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
	return decision{state: fleet.RegistrationWaiting, reason: reasonTooManyRequests, wake: end,
		message: fmt.Sprintf("%s; this one (%s) is deleted in a minute, and its agent asks again", why, d.reason)}
}

// partOf is how many places of a shared account the requests of one cluster may take; zero if any.
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

// tooManyClusters waits until other new Clusters have beaten.
func tooManyClusters(o observed, most int) decision {
	return decision{state: fleet.RegistrationWaiting, reason: reasonTooManyClusters, wake: o.end(), message: fmt.Sprintf(
		"%d new Clusters of %s have not sent a heartbeat yet: registration goes on when one does or is deleted, or raise registration.maxNewClustersPerToken of the hub's chart", most, o.asker())}
}

// enforceLimits replaces a decision that would exceed what the settings allow the holder of a token.
func (c *Controller) enforceLimits(r *fleet.ClusterRegistration, o observed, d decision, now time.Time) decision {
	most := c.Config.Current().Registration
	if d.action == createCluster && !c.tracker.reserve(types.NamespacedName{Namespace: r.Namespace, Name: d.cluster}, tokenOf(r), most.MaxNewClustersPerToken) {
		d = tooManyClusters(o, most.MaxNewClustersPerToken)
	}
	return limit(d, o, c.tracker.others(r), most, now)
}

// warnUnread records an event on a token whose requests are deleted before they are answered.
func (c *Controller) warnUnread(o observation, d decision) {
	if o.registrationToken != nil && d.message != "" {
		c.Recorder.Eventf(o.registrationToken, nil, corev1.EventTypeWarning, reasonTooManyRequests, "Register", "requests are deleted unanswered: too many wait or were refused")
	}
}

// awaitManager leaves a request alone that is labelled for another manager, and deletes one that nobody has taken up.
func (c *Controller) awaitManager(ctx context.Context, r *fleet.ClusterRegistration) (ctrl.Result, error) {
	if takenUp(r) {
		return ctrl.Result{}, nil
	}
	most, now := c.Config.Current().Registration, c.Clock.Now()
	end := r.CreationTimestamp.Add(most.RequestLifetime)
	if tooMany := most.MaxQueuedPerToken > 0 && c.tracker.foreign(r) > most.MaxQueuedPerToken; !tooMany && now.Before(end) {
		return kube.At(end, now), nil
	}
	ctrl.LoggerFrom(ctx).Info("Deleting a request that no other manager has taken up", "label", fleet.LabelClusterManagement, "manager", kube.Clip(r.Labels[fleet.LabelClusterManagement], maxFailure))
	return ctrl.Result{}, c.remove(ctx, r)
}
