package deploy

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/agent/retry"
	"github.com/muster-fleet/muster/internal/deploy/live"
	"github.com/muster-fleet/muster/internal/deploy/release"
)

// delivery is what is remembered of one deployment. Only the worker that has its name changes it, release, set and seen
// under the lock, because all look at these.
type delivery struct {
	// release is nil if there is none, set are its objects once they were looked up.
	release *release.Summary
	set     *live.Set
	// seen says that there was a BundleDeployment since the deployer began, workspace is the namespace of its Bundle.
	seen      bool
	workspace string
	// leaving is since when the release is being removed.
	leaving time.Time
	failure failure
	// pace is that of attempts to deploy, reporting and watching are those of what may fail beside that.
	pace                wait.Backoff
	reporting, watching pace
	// attempt is what is being done about it.
	attempt *attempt
	// absence is what the hub has said of its BundleDeployment since that is missing.
	absence absence
	// correctAt is when drift may be corrected again, corrections how often that was done without a quiet time between.
	correctAt   time.Time
	corrections int
	// state is the last one, uid that of the BundleDeployment, written what was reported in it last.
	state   State
	uid     types.UID
	written *fleet.BundleDeploymentStatus
	// unwatched is since when the objects cannot be looked at.
	unwatched time.Time
	// rested is the generation in which the agent's own release was seen, and reported, to be well; 0 if it is not.
	rested int64
}

func (d *Deployer) delivery(name string) *delivery {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.deliveries[name] == nil {
		d.deliveries[name] = &delivery{pace: retry.Failed()}
	}
	return d.deliveries[name]
}

func (d *Deployer) forget(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.deliveries, name)
	delete(d.waiting, name)
}

// pace grows with each wait, and begins anew when it is made anew.
type pace struct{ backoff wait.Backoff }

func (p *pace) next() time.Duration {
	if p.backoff == (wait.Backoff{}) {
		p.backoff = retry.Failed()
	}
	return p.backoff.Step()
}
