package bundle

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	helm "helm.sh/helm/v4/pkg/chart/v2"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/agent/deployer"
	"github.com/muster-fleet/muster/internal/deploy/release"
)

const (
	// turnTimeout is how long a deployment may wait for those that are rendered alone.
	turnTimeout = time.Hour
	// prepareTimeout is how long reading a deployment and fetching its chart may take.
	prepareTimeout = 10 * time.Minute
	// RenderTimeout is how long a chart may take to be rendered; a template ends only with the process.
	RenderTimeout = 3 * time.Minute
	// uninstallTimeout is how long an uninstall may take, with all hooks.
	uninstallTimeout = time.Hour
	// margin is for everything that Helm does besides waiting.
	margin = 2 * time.Minute

	reasonCrashed = "DeployerCrashed"
)

// Attempts report to the agent which BundleDeployments are being worked on, so that the agent knows on which the process crashed, and let
// suspects work alone.
type Attempts struct {
	// Reply sends a reply to the agent.
	Reply func(deployer.Reply)
	// RenderTimeout is how long a chart may take to be rendered.
	RenderTimeout time.Duration

	mu       sync.Mutex
	suspects map[string]deployer.Suspect
	// alone is locked by a suspect while it is compared or its chart is rendered, and read-locked by
	// the others. No lock is held while something is downloaded or removed, or a hook runs.
	alone sync.RWMutex
}

// SetSuspects replaces the suspects.
func (a *Attempts) SetSuspects(all []deployer.Suspect) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.suspects = make(map[string]deployer.Suspect, len(all))
	for _, suspect := range all {
		a.suspects[suspect.Name] = suspect
	}
}

func (a *Attempts) suspected(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, suspected := a.suspects[name]
	return suspected
}

// crashed is the failure of a suspect that has to wait; none if the BundleDeployment changed since the crash.
func (a *Attempts) crashed(name string, deployment *fleet.BundleDeployment) failure {
	a.mu.Lock()
	defer a.mu.Unlock()
	suspect := a.suspects[name]
	uid, generation := versionOf(deployment)
	if suspect.Message == "" || suspect.UID != uid || suspect.Generation != generation {
		return failure{}
	}
	return failure{of: generation, reason: reasonCrashed, message: suspect.Message, retryAt: suspect.RetryAt}
}

func versionOf(deployment *fleet.BundleDeployment) (uid string, generation int64) {
	if deployment == nil {
		return "", 0
	}
	return string(deployment.UID), deployment.Generation
}

// attempt is the work of a worker on one deployment.
type attempt struct {
	of     *Attempts
	action deployer.Action
	// lock waits for this one's turn, free lets others have theirs; both may be called twice.
	lock, free func()
}

// begin waits until the deployment may be worked on.
func (a *Attempts) begin(name string, deployment *fleet.BundleDeployment) *attempt {
	lock, free := a.alone.RLock, a.alone.RUnlock
	if a.suspected(name) {
		lock, free = a.alone.Lock, a.alone.Unlock
	}
	one := &attempt{of: a, action: deployer.Action{Name: name}}
	one.action.UID, one.action.Generation = versionOf(deployment)
	held := false
	one.lock = func() {
		if !held {
			lock()
			held = true
		}
	}
	one.free = func() {
		if held {
			held = false
			free()
		}
	}
	one.lock()
	one.extend(prepareTimeout)
	return one
}

// extend sets another deadline.
func (a *attempt) extend(within time.Duration) {
	a.action.Within = within
	action := a.action
	a.of.Reply(deployer.Reply{Begun: &action})
}

// renders waits until the chart may be loaded and rendered, and sets the deadline for that.
func (a *attempt) renders() {
	a.extend(turnTimeout)
	a.lock()
	a.action.Rendered = false
	a.extend(a.of.RenderTimeout)
}

// waits sets the deadline for what waits for others: a download, the API server, a hook.
func (a *attempt) waits(within time.Duration) {
	a.action.Rendered = true
	a.extend(within)
	a.free()
}

// end reports the end of an attempt, and whether the process survived the part on which it may crash.
func (a *attempt) end(state State) {
	survived := slices.Contains([]State{Gone, Removing, Moving, Deploying, Correcting, Watching}, state)
	if survived {
		a.of.mu.Lock()
		delete(a.of.suspects, a.action.Name)
		a.of.mu.Unlock()
	}
	a.of.Reply(deployer.Reply{Ended: &deployer.Ended{Name: a.action.Name, Survived: survived}})
	a.free()
}

// operationTimeout is how long Helm may take after rendering: each hook, the objects, and a rollback may each take the timeout.
func operationTimeout(r release.Request) time.Duration {
	operation := time.Duration(hooks(r.Chart)+2) * r.Timeout()
	if r.Options.Helm != nil && r.Options.Helm.Atomic {
		operation *= 2
	}
	return operation + margin
}

// hooks is how many hooks a chart has at most.
func hooks(chart *helm.Chart) int {
	count := 0
	for _, template := range chart.Templates {
		count += strings.Count(string(template.Data), "helm.sh/hook")
	}
	for _, dependency := range chart.Dependencies() {
		count += hooks(dependency)
	}
	return count
}

// reconcileName reconciles one name of the queue.
func (d *Deployer) reconcileName(ctx context.Context, name string) {
	if name == newKinds {
		d.wakeForKinds()
		return
	}
	deployment := d.store.get(name)
	of := d.delivery(name)
	of.attempt = d.Attempts.begin(name, deployment)
	d.reconcile(ctx, name, of)
	of.attempt.end(of.state)
	of.attempt = nil
}
