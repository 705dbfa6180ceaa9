package deploy

import (
	"context"
	"strings"
	"sync"
	"time"

	helm "helm.sh/helm/v4/pkg/chart/v2"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/agent/deployer"
	"github.com/muster-fleet/muster/internal/deploy/release"
)

const (
	// prepareTimeout is how long it may take to look at a deployment and to fetch what it is made of.
	prepareTimeout = 10 * time.Minute
	// renderTimeout is how long a chart may take to be rendered; nothing but the end of the process ends a template.
	renderTimeout = 3 * time.Minute
	// uninstallTimeout is how long it may take to uninstall a release, with all its hooks.
	uninstallTimeout = time.Hour
	// margin is for all that Helm does beside waiting.
	margin = 2 * time.Minute

	reasonCrashed = "DeployerCrashed"
)

// Attempts tell the agent what is being worked on, so that it knows on what the process ended, and let suspects work alone.
type Attempts struct {
	// Tell tells the agent.
	Tell func(deployer.Answer)
	// RenderTimeout is how long a chart may take to be rendered.
	RenderTimeout time.Duration

	mu       sync.Mutex
	suspects map[string]deployer.Suspect
	// alone is held by a suspect until it is rendered, and shared by the others until they are.
	alone sync.RWMutex
}

// suspect makes these the suspects.
func (a *Attempts) suspect(all []deployer.Suspect) {
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

// crashed is the failure of a deployment that has to wait because the process ended on it; none if it has changed since.
func (a *Attempts) crashed(name string, deployment *fleet.BundleDeployment) failure {
	if a == nil {
		return failure{}
	}
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

// attempt is the work of one worker on one deployment. A nil one tells nobody.
type attempt struct {
	of     *Attempts
	action deployer.Action
	free   func()
}

// begin waits until the deployment may be worked on.
func (a *Attempts) begin(name string, deployment *fleet.BundleDeployment) *attempt {
	if a == nil {
		return nil
	}
	lock, free := a.alone.RLock, a.alone.RUnlock
	if a.suspected(name) {
		lock, free = a.alone.Lock, a.alone.Unlock
	}
	lock()
	one := &attempt{of: a, action: deployer.Action{Name: name}, free: sync.OnceFunc(free)}
	one.action.UID, one.action.Generation = versionOf(deployment)
	one.goesOn(prepareTimeout)
	return one
}

// goesOn tells how long it may take from now on.
func (a *attempt) goesOn(within time.Duration) {
	if a == nil {
		return
	}
	a.action.Within = within
	action := a.action
	a.of.Tell(deployer.Answer{Begun: &action})
}

// renders is the time of the templates, for which nothing is known to wait.
func (a *attempt) renders() {
	if a != nil {
		a.goesOn(a.of.RenderTimeout)
	}
}

// rendered is the time from which on Helm waits for the API server.
func (a *attempt) rendered(within time.Duration) {
	if a == nil {
		return
	}
	a.action.Rendered = true
	a.goesOn(within)
	a.free()
}

// end says that the work is over, and whether the process survived what it could have ended on.
func (a *attempt) end(state State) {
	if a == nil {
		return
	}
	survived := false
	switch state {
	case Gone, Removing, Moving, Deploying, Correcting, Watching:
		survived = true
	case Confirming, Kept, Held, Unsupported, Waiting, Failed:
	}
	if survived {
		a.of.mu.Lock()
		delete(a.of.suspects, a.action.Name)
		a.of.mu.Unlock()
	}
	a.of.Tell(deployer.Answer{Ended: &deployer.Ended{Name: a.action.Name, Survived: survived}})
	a.free()
}

// operationTimeout is how long Helm may take after rendering: each hook may take the timeout, and so may the objects, and what takes it back.
func operationTimeout(r release.Request) time.Duration {
	operation := time.Duration(hooks(r.Chart)+2) * r.Timeout()
	if r.Options.Helm != nil && r.Options.Helm.Atomic {
		operation *= 2
	}
	return operation + margin
}

// hooks is how many there may be at most.
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

// attend works on one deployment.
func (d *Deployer) attend(ctx context.Context, name string) {
	switch name {
	case trimming:
		trim()
		return
	case arriving:
		d.arrived()
		return
	}
	deployment := d.store.get(name)
	of := d.delivery(name)
	of.attempt = d.Attempts.begin(name, deployment)
	d.reconcile(ctx, name, of)
	of.attempt.end(of.state)
	of.attempt = nil
}
