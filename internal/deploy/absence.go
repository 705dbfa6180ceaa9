package deploy

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/muster-fleet/muster/internal/agent/deployer"
	"github.com/muster-fleet/muster/internal/agent/remote"
	"github.com/muster-fleet/muster/internal/agent/retry"
)

const reasonConfirming = "its BundleDeployment is missing; the release stays until the hub has confirmed, and confirmed again, that it was deleted"

// Pauses are how long a BundleDeployment has to be confirmed as deleted before its release is removed. Within them the hub writes one that was
// deleted by mistake again.
type Pauses struct {
	// Watched is for one whose deletion was watched, while others stayed.
	Watched time.Duration
	// Missing is for one that was missing from a list: after the kind was not served, or the hub not reached, or when nothing else is left.
	Missing time.Duration
}

// pauses of production. A hub that runs writes within a second. One that has to find out first that a kind is served again takes longer, and
// one that is started anew waits for its Lease and reads the whole fleet.
var pauses = Pauses{Watched: 10 * time.Second, Missing: 2 * time.Minute}

// absence is what the hub has answered since a BundleDeployment is missing.
type absence struct {
	// since is when the hub first confirmed that it was deleted, in an unbroken series; asked is when it was asked last, askAt when to again.
	since, asked, askAt time.Time
	// doubted says that the hub could not confirm it at some time; pace is how long to wait then.
	doubted bool
	pace    wait.Backoff
	// told says that the agent was told of it.
	told bool
	// restored says that the hub has an earlier state than the one in which the release was delivered.
	restored bool
}

// gone is what decides about a release whose BundleDeployment is missing.
type gone struct {
	restored bool
	// askAt is when to ask the hub, removeAt when a confirmation suffices; zero as long as there was none.
	askAt, removeAt time.Time
}

// gone forgets what was found out if the BundleDeployment is wanted.
func (d *Deployer) gone(name string, of *delivery, wanted bool) gone {
	if wanted {
		if of.absence != (absence{}) {
			of.absence = absence{}
			d.clearProblem(name)
		}
		return gone{}
	}
	how := d.store.missing(name)
	now := gone{askAt: of.absence.askAt, restored: of.release.HubRestored || of.absence.restored || how.restored}
	if of.absence.since.IsZero() {
		if how.watchedSince.After(of.absence.asked) {
			now.askAt = time.Time{} // the hub may know now
		}
		return now
	}
	pauses := d.pauses()
	if how.watched && !of.absence.doubted {
		now.removeAt = of.absence.since.Add(pauses.Watched)
		return now
	}
	now.removeAt = of.absence.since.Add(pauses.Missing)
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

// confirm asks the hub whether a BundleDeployment was deleted, and returns whether it was confirmed for long enough.
func (d *Deployer) confirm(ctx context.Context, name string, of *delivery) bool {
	version, err := d.Hub.ConfirmDeleted(ctx, types.UID(d.Member), name)
	now := d.Clock.Now()
	of.absence.asked = now
	if err == nil && earlier(version, of.release.HubVersion) {
		of.absence.restored = true
		return false
	}
	if err == nil {
		if of.absence.since.IsZero() {
			of.absence.since = now
		}
		if of.absence.told {
			d.clearProblem(name)
		}
		of.absence.pace, of.absence.told = wait.Backoff{}, false
		known := d.gone(name, of, false)
		of.absence.askAt = known.removeAt
		return !known.restored && !now.Before(known.removeAt)
	}
	if of.absence.pace == (wait.Backoff{}) {
		of.absence.pace = retry.Unknown()
	}
	of.absence.since, of.absence.doubted, of.absence.askAt = time.Time{}, true, now.Add(of.absence.pace.Step())
	if errors.Is(err, remote.ErrExists) {
		return false // the watch will say so
	}
	message := fmt.Sprintf("release %s stays, because the hub does not say whether its BundleDeployment was deleted: %s", of.release, d.because(err))
	d.Log.Info("removal unconfirmed", "deployment", name, "reason", message, "retry", of.absence.askAt)
	d.setProblem(name, deployer.ReasonRemovalUnconfirmed, message)
	of.absence.told = true
	return false
}

// because is why the hub could not confirm something: it was not reached or refused, or what it said is no confirmation.
func (d *Deployer) because(err error) string {
	var answer apierrors.APIStatus
	var connection *url.Error
	if errors.As(err, &answer) || errors.As(err, &connection) {
		return d.Hub.Explain(err)
	}
	return err.Error()
}

// keep notes that a release stays because the hub lost it, and that for good: the versions of a restored hub grow again.
func (d *Deployer) keep(ctx context.Context, name string, of *delivery) error {
	if !of.release.HubRestored {
		if err := d.Cluster.MarkHubRestored(ctx, *of.release); err != nil {
			return err
		}
		kept := *of.release
		kept.HubRestored = true
		d.mu.Lock()
		of.release = &kept
		d.mu.Unlock()
	}
	d.setProblem(name, deployer.ReasonHubRestored, fmt.Sprintf("release %s stays, because the hub was restored from an earlier state than the one in which it was delivered, "+
		"and does not know it: create its Bundle again; to remove the release, delete the Bundle after that", of.release))
	return nil
}

// following takes note of how an attempt to watch BundleDeployments ended.
func (d *Deployer) following(err error) {
	back := d.store.followed(err, d.Clock.Now())
	if err != nil {
		d.Log.Info("watching BundleDeployments failing", "reason", d.Hub.Explain(err))
	}
	if back {
		d.askAgain()
	}
}

// askAgain has everything looked at of which the hub did not say whether it was deleted.
func (d *Deployer) askAgain() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, of := range d.deliveries {
		if of.release != nil && d.store.get(name) == nil {
			d.queue.Add(name)
		}
	}
}

// earlier says whether one resource version of an API server is before another.
func earlier(one, other string) bool {
	order, err := resourceversion.CompareResourceVersion(one, other)
	return err == nil && order < 0 // what is no version says nothing
}
