package bundle

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/deploy/drift"
	"github.com/muster-fleet/muster/internal/deploy/release"
	"github.com/muster-fleet/muster/internal/retry"
)

// delivery is the state of one deployment. Only the worker that has its name changes it, and the fields release, set, known and workspace only
// under the lock, because others read these.
type delivery struct {
	// release is nil if there is none; set are its objects, once they were read.
	release *release.Summary
	set     *drift.Set
	// others are the Bundle's releases elsewhere, from which release was moved: they go when release is deployed.
	others []release.Summary
	// watched are the objects of the set when it was made: the set itself is the worker's alone.
	watched []applied.Query
	// notedAt is when it was noted last which objects are unmodified.
	notedAt time.Time
	// known says that there was a BundleDeployment since the deployer started, workspace is the namespace of its Bundle.
	known     bool
	workspace string
	// removingSince is since when the release is being removed.
	removingSince time.Time
	failure       failure
	// backoff is that of attempts to deploy, reporting and watching are those of other failures.
	backoff, reporting, watching wait.Backoff
	// attempt is the work in progress.
	attempt *attempt
	// absence is what the hub answered about the missing BundleDeployment.
	absence absence
	// correctAt is when drift may be corrected again, corrections how often that was done in a series.
	correctAt   time.Time
	corrections int
	// state is the last state, uid that of the BundleDeployment, written the status that was reported last.
	state   State
	uid     types.UID
	written *fleet.BundleDeploymentStatus
	// unwatched is since when the objects cannot be observed.
	unwatched time.Time
	// agentIdle is the generation in which the agent's own release was reported as well; 0 if in none.
	agentIdle int64
}

func newDelivery(releases ...release.Summary) *delivery {
	of := &delivery{backoff: retry.Failed(), reporting: retry.Failed(), watching: retry.Failed()}
	of.setAll(releases)
	return of
}

func (d *Deployer) delivery(name string) *delivery {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.deliveries[name] == nil {
		d.deliveries[name] = newDelivery()
	}
	return d.deliveries[name]
}

// noteCompared notes which objects of a release are unmodified, so that the next deployer need not
// compare them. Without the note it compares all.
func (d *Deployer) noteCompared(ctx context.Context, of *delivery) {
	note, more := of.set.Note()
	now := d.Clock.Now()
	if !more || now.Sub(of.notedAt) < noteEvery {
		return
	}
	of.notedAt = now
	if err := d.Cluster.NoteCompared(ctx, *of.release, note); err != nil {
		d.Log.Info("noting what was compared failing", "release", of.release.String(), "reason", err.Error())
		return
	}
	of.set.SetNote(note)
	noted := *of.release
	noted.Compared = note
	d.mu.Lock()
	defer d.mu.Unlock()
	of.release = &noted
}

func (d *Deployer) forget(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.deliveries, name)
	delete(d.waiting, name)
	d.detector.Use(name, nil)
}
