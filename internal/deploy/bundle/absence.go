package bundle

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/retry"
)

const reasonConfirming = "its BundleDeployment is missing; the release stays until the hub has confirmed, and confirmed again, that it " +
	"was deleted"

// Pauses are the times between a confirmed deletion of a BundleDeployment and the removal of its
// release. Meanwhile the hub can create a BundleDeployment again after a deletion by mistake.
type Pauses struct {
	// Watched is the pause after a watched deletion while other BundleDeployments stay.
	Watched time.Duration
	// Missing is the pause after a BundleDeployment was missing from a list. The kind was not served,
	// the hub could not be reached, or no BundleDeployment is left.
	Missing time.Duration
}

// pauses are the times in production. A running hub creates a BundleDeployment again within a
// second. A hub takes longer if it waits for its Lease and reads the whole fleet, or discovers a
// kind again.
var pauses = Pauses{Watched: 10 * time.Second, Missing: 2 * time.Minute}

// absence holds the answers of the hub since a BundleDeployment went missing.
type absence struct {
	// since is the time of the first confirmation without a doubt since; the other two are the times
	// of the last and the next request.
	since, asked, askAt time.Time
	// doubted is set once the hub cannot confirm the deletion; backoff then delays the next request.
	doubted bool
	backoff wait.Backoff
	// reported is set once the agent has received the problem.
	reported bool
	// restored is set if the hub has an earlier state than at the time of the deployment.
	restored bool
	// predates is set if the release is older than the member's account. Another hub or an earlier
	// membership may have deployed it.
	predates bool
}

// confirmation decides whether and when the release of a missing BundleDeployment may be removed.
type confirmation struct {
	restored bool
	// askAt is the time to query the hub again. A confirmation suffices from removeAt on; removeAt is
	// zero before the first confirmation.
	askAt, removeAt time.Time
}

// confirmation returns the state of the hub's confirmations. It resets them if the BundleDeployment
// is wanted.
func (d *Deployer) confirmation(name string, delivery *delivery, wanted bool) confirmation {
	if wanted {
		if delivery.absence != (absence{}) {
			delivery.absence = absence{}
			d.clearProblem(name)
		}
		return confirmation{}
	}
	how := d.store.missing(name)
	now := confirmation{askAt: delivery.absence.askAt, restored: delivery.release.HubRestored || delivery.absence.restored || how.restored}
	if delivery.absence.since.IsZero() {
		if how.watchedSince.After(delivery.absence.asked) {
			now.askAt = time.Time{} // the hub may know now
		}
		return now
	}
	pauses := d.pauses()
	if how.watched && !delivery.absence.doubted {
		now.removeAt = delivery.absence.since.Add(pauses.Watched)
		return now
	}
	now.removeAt = delivery.absence.since.Add(pauses.Missing)
	if again := how.watchedSince.Add(pauses.Missing); again.After(now.removeAt) {
		now.removeAt = again
	}
	return now
}

func (d *Deployer) pauses() Pauses {
	if d.Pauses != nil {
		return *d.Pauses
	}
	return pauses
}

// confirm queries the hub for the deletion of a BundleDeployment, and reports whether the release
// may be removed.
func (d *Deployer) confirm(ctx context.Context, name string, delivery *delivery) bool {
	restored, err := d.Hub.ConfirmDeleted(ctx, types.UID(d.Member), hubclient.Delivered{
		Name: name, UID: delivery.release.HubUID, Version: delivery.release.HubVersion,
	})
	now := d.Clock.Now()
	delivery.absence.asked = now
	if err == nil && restored {
		delivery.absence.restored = true
		return false
	}
	if err == nil && !delivery.known && delivery.release.Member != d.Member && delivery.inherited() {
		var since time.Time
		if since, err = d.Hub.Since(ctx); err == nil && delivery.release.DeployedAt.Before(since) {
			d.Log.Info("Release left alone", "deployment", name, "release", delivery.release.String(), "reason",
				"another agent deployed it before this cluster joined with its account, and the hub has no BundleDeployment for it: create its "+
					"Bundle, or uninstall it with Helm")
			delivery.absence.predates = true
			return false
		}
	}
	if err == nil {
		if delivery.absence.since.IsZero() {
			delivery.absence.since = now
		}
		if delivery.absence.reported {
			d.clearProblem(name)
		}
		delivery.absence.backoff, delivery.absence.reported = wait.Backoff{}, false
		known := d.confirmation(name, delivery, false)
		delivery.absence.askAt = known.removeAt
		return !known.restored && !now.Before(known.removeAt)
	}
	if delivery.absence.backoff == (wait.Backoff{}) {
		delivery.absence.backoff = retry.Unknown()
	}
	delivery.absence.since, delivery.absence.doubted, delivery.absence.askAt = time.Time{}, true, now.Add(delivery.absence.backoff.Step())
	if errors.Is(err, hubclient.ErrExists) {
		return false // the watch delivers it
	}
	message := fmt.Sprintf("release %s stays, because the hub does not report whether its BundleDeployment was deleted: %s",
		delivery.release, d.whyUnconfirmed(err))
	d.Log.Info("Removal not confirmed", "deployment", name, "reason", message, "retry", delivery.absence.askAt)
	d.setProblem(name, reasons.RemovalUnconfirmed, message)
	delivery.absence.reported = true
	return false
}

// whyUnconfirmed explains why the hub could not confirm a deletion. The hub was not reached,
// refused, or gave another answer.
func (d *Deployer) whyUnconfirmed(err error) string {
	var answer apierrors.APIStatus
	var connection *url.Error
	if errors.As(err, &answer) || errors.As(err, &connection) {
		return d.Hub.Explain(err)
	}
	return err.Error()
}

// watchEnded handles the result of an attempt to watch BundleDeployments.
func (d *Deployer) watchEnded(err error) {
	cause := ""
	if err != nil {
		cause = d.Hub.Explain(err)
	}
	resumed, news := d.store.watchResult(cause, d.Clock.Now())
	if news {
		d.Log.Info("Failed to watch the BundleDeployments", "reason", cause)
	}
	if resumed {
		d.recheckMissing()
	}
}

// recheckMissing enqueues each release with a missing BundleDeployment.
func (d *Deployer) recheckMissing() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, of := range d.deliveries {
		if of.release != nil && d.store.get(name) == nil {
			d.queue.Add(name)
		}
	}
}
