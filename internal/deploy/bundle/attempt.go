package bundle

import (
	"context"
	"slices"
	"sync"
	"time"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery/protocol"
	"github.com/muster-fleet/muster/internal/deploy/release"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

const (
	// turnTimeout bounds the wait of a chart for a renderer and for the API server.
	turnTimeout = time.Hour
	// prepareTimeout bounds reading a deployment and fetching its chart.
	prepareTimeout = 10 * time.Minute
	// RenderTimeout bounds rendering a chart, in a process of its own.
	RenderTimeout = 3 * time.Minute
	// uninstallTimeout bounds an uninstall with all its hooks.
	uninstallTimeout = time.Hour
	// margin covers everything Helm does besides waiting.
	margin = 2 * time.Minute
)

// Attempts report the BundleDeployments in progress to the agent. The agent can then attribute a
// crash to one of them. Suspects run alone.
type Attempts struct {
	// Reply sends a reply to the agent.
	Reply    func(protocol.Reply)
	mu       sync.Mutex
	suspects map[string]protocol.Suspect
	// alone is locked by a suspect while its state is observed and compared, and read-locked by all
	// others. The lock is free during downloads, rendering, removals and hooks.
	alone sync.RWMutex
}

// SetSuspects replaces the suspects.
func (a *Attempts) SetSuspects(all []protocol.Suspect) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.suspects = make(map[string]protocol.Suspect, len(all))
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

// crashed returns the failure of a suspect that must wait. It returns none if the BundleDeployment
// changed since the crash.
func (a *Attempts) crashed(name string, deployment *fleet.BundleDeployment) failure {
	a.mu.Lock()
	defer a.mu.Unlock()
	suspect := a.suspects[name]
	uid, generation := versionOf(deployment)
	if suspect.Message == "" || suspect.UID != uid || suspect.Generation != generation {
		return failure{}
	}
	removing := deployment == nil || deployment.DeletionTimestamp != nil
	return failure{of: generation, removing: removing, reason: reasons.DeployerCrashed, message: suspect.Message, retryAt: suspect.RetryAt}
}

func versionOf(deployment *fleet.BundleDeployment) (uid string, generation int64) {
	if deployment == nil {
		return "", 0
	}
	return string(deployment.UID), deployment.Generation
}

// attempt is the work of one worker on one deployment.
type attempt struct {
	of     *Attempts
	action protocol.Action
	free   func()
}

// begin waits until no suspect blocks the deployment.
func (a *Attempts) begin(name string, deployment *fleet.BundleDeployment) *attempt {
	lock, free := a.alone.RLock, a.alone.RUnlock
	if a.suspected(name) {
		lock, free = a.alone.Lock, a.alone.Unlock
	}
	lock()
	one := &attempt{of: a, action: protocol.Action{Name: name}, free: sync.OnceFunc(free)}
	one.action.UID, one.action.Generation = versionOf(deployment)
	one.extend(prepareTimeout)
	return one
}

// extend sets another deadline.
func (a *attempt) extend(within time.Duration) {
	a.action.Within = within
	action := a.action
	a.of.Reply(protocol.Reply{Begun: &action})
}

// waits sets the deadline for a wait: a download, the API server, a hook.
func (a *attempt) waits(within time.Duration) {
	a.action.Rendered = true
	a.extend(within)
	a.free()
}

// end reports the end of an attempt, and whether the process survived the risky part.
func (a *attempt) end(state State) {
	survived := slices.Contains([]State{Gone, Removing, Moving, Deploying, Correcting, Watching}, state)
	if survived {
		a.of.mu.Lock()
		delete(a.of.suspects, a.action.Name)
		a.of.mu.Unlock()
	}
	a.of.Reply(protocol.Reply{Ended: &protocol.Ended{Name: a.action.Name, Survived: survived}})
	a.free()
}

// operationTimeout bounds a Helm operation after rendering. Each hook, the objects and a rollback
// may each take the timeout.
func operationTimeout(r release.Request, hooks int) time.Duration {
	operation := time.Duration(hooks+2) * r.Timeout()
	if r.Options.Helm != nil && r.Options.Helm.Atomic {
		operation *= 2
	}
	return operation + margin
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
