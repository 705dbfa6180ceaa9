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

// delivery is the state of one deployment. Only the worker for its name changes it. The worker
// holds the lock for the fields release, set, known and workspace, because other goroutines read
// them.
type delivery struct {
	// release is nil if there is none; set holds its objects after the first read.
	release *release.Summary
	set     *drift.Set
	// others are the releases from before a move. They are removed once release is deployed.
	others []release.Summary
	// watched are the objects of set at its creation, because only the worker may read set.
	watched []applied.Query
	// notedAt is the time of the last note of unmodified objects.
	notedAt time.Time
	// known is set if a BundleDeployment existed since the deployer started; workspace is the
	// namespace of its Bundle.
	known     bool
	workspace string
	// removingSince is the start of the removal of the release.
	removingSince time.Time
	failure       failure
	// backoff delays attempts to deploy; reporting and watching delay after other failures.
	backoff, reporting, watching wait.Backoff
	// attempt is the work in progress.
	attempt *attempt
	// absence holds the answers of the hub about a missing BundleDeployment. keepAt is the time to
	// report the release of a lost hub as unknown; it needs the lock.
	absence absence
	keepAt  time.Time
	// correctAt is the time of the next permitted correction, corrections the number of them in a
	// series.
	correctAt   time.Time
	corrections int
	// state is the last state, uid the UID of the BundleDeployment, written the last reported status.
	state   State
	uid     types.UID
	written *fleet.BundleDeploymentStatus
	// crds is the comparison of the chart's definitions. Its fields noted and stale need the lock.
	crds crds
	// unwatched is the time of the first failed observation of the objects.
	unwatched time.Time
	// agentIdle is the generation with a reported healthy release of the agent itself; 0 if there is
	// none.
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

// noteCompared notes the unmodified objects of a release, for the next deployer to skip. Without
// the note the next deployer compares all objects.
func (d *Deployer) noteCompared(ctx context.Context, delivery *delivery) {
	note, more := delivery.set.Note()
	now := d.Clock.Now()
	if !more || now.Sub(delivery.notedAt) < noteEvery {
		return
	}
	delivery.notedAt = now
	if err := d.Cluster.NoteCompared(ctx, *delivery.release, note); err != nil {
		d.Log.Info("Failed to store the comparison", "release", delivery.release.String(), "reason", err.Error())
		return
	}
	delivery.set.SetNote(note)
	noted := *delivery.release
	noted.Compared = note
	d.mu.Lock()
	defer d.mu.Unlock()
	delivery.release = &noted
}

// noteJobs notes the runs of the Jobs of a release. No Job then runs again with the same content.
func (d *Deployer) noteJobs(ctx context.Context, delivery *delivery) {
	note, more := delivery.set.Runs()
	if !more {
		return
	}
	if err := d.Cluster.NoteJobs(ctx, *delivery.release, note); err != nil {
		d.Log.Info("Failed to store the runs of Jobs", "release", delivery.release.String(), "reason", err.Error())
		return
	}
	delivery.set.SetRuns(note)
	noted := *delivery.release
	noted.Jobs = note
	d.mu.Lock()
	defer d.mu.Unlock()
	delivery.release = &noted
}

func (d *Deployer) forget(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.deliveries, name)
	delete(d.waiting, name)
	d.clearKept(name)
	d.detector.Use(name, nil)
}
