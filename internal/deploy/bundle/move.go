package bundle

import (
	"context"
	"fmt"
	"slices"
	"time"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/deploy/release"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

// move deploys a release in its new place, then removes it from its old one. The old release keeps
// running if anything fails.
func (d *Deployer) move(ctx context.Context, name string, delivery *delivery, s observation) error {
	before := *delivery.release
	switch {
	case s.current():
		return d.removeOther(ctx, name, delivery, s, delivery.others[0])
	case before.Agent, d.managesAgent(name, before): // no object is removed, and the two cannot coexist
		return withReason(reasons.MoveFailed, d.removeRelease(ctx, name, delivery, before))
	}
	if err := d.deploy(ctx, name, delivery, s); err != nil {
		return fmt.Errorf("release %s keeps running until release %s/%s is deployed, and is removed then: %w",
			before.ID(), s.namespace, s.name, err)
	}
	return nil
}

// removeOther removes the former release of a moved deployment.
func (d *Deployer) removeOther(ctx context.Context, name string, delivery *delivery, s observation, other release.Summary) error {
	delivery.attempt.waits(uninstallTimeout)
	d.watchRemoval(ctx, name, delivery, other)
	doing := fmt.Sprintf("release %s is deployed, and release %s is being removed", s.release.ID(), other.ID())
	reported := d.reportLong(ctx, delivery, s, decision{State: Moving, Reason: doing})
	err := d.removeRelease(ctx, name, delivery, other)
	reported()
	return withReason(reasons.MoveFailed, err)
}

// around returns the other releases of a deployment. The release before continues under the new
// name; the releases leaving are removed after the deployment.
func around(delivery *delivery, to release.ID, adopts bool) (before *release.Summary, leaving []release.Summary) {
	current := delivery.release
	if current == nil || delivery.otherWorkspace() {
		return nil, nil
	}
	leaving = slices.DeleteFunc(slices.Clone(delivery.others), func(s release.Summary) bool { return s.ID() == to })
	switch {
	case current.ID() == to && current.History == current.Namespace:
		return nil, leaving
	case current.ID() == to, adopts && current.Namespace == to.Namespace:
		return current, leaving
	}
	return nil, append(leaving, *current)
}

// settled clears the mark of leaving from releases after their successor is deployed.
func settled(leaving []release.Summary) []release.Summary {
	for i := range leaving {
		leaving[i].Leaves = ""
	}
	return leaving
}

// reportLong reports a long operation, until the returned function is called. It reports a move at
// once: readiness in the old place is not readiness in the new one.
func (d *Deployer) reportLong(ctx context.Context, delivery *delivery, s observation, doing decision) (end func()) {
	done, reported := make(chan struct{}), make(chan *fleet.BundleDeploymentStatus, 1)
	after := ReportAfter
	if s.found && (s.moving() || s.superseded) {
		after = 0
	}
	timer := d.Clock.NewTimer(after)
	go func() {
		defer timer.Stop()
		select {
		case <-done:
			reported <- nil
		case <-timer.C():
			status := statusOf(doing, s, d.Clock.Now())
			if d.patchStatus(ctx, s.deployment, status) != nil {
				reported <- nil
				return
			}
			reported <- &status
		}
	}()
	return func() {
		close(done)
		if status := <-reported; status != nil {
			delivery.written = status
		}
	}
}

// all returns the IDs of all releases of the deployment.
func (delivery *delivery) all() (ids []release.ID) {
	if delivery.release != nil {
		ids = append(ids, delivery.release.ID())
	}
	for _, s := range delivery.others {
		ids = append(ids, s.ID())
	}
	return ids
}

// keptIn reports whether a Secret is the newest revision of a release of the deployment.
func (delivery *delivery) keptIn(namespace, name string) bool {
	is := func(s release.Summary) bool { return s.History == namespace && release.SecretName(s) == name }
	return delivery.release != nil && is(*delivery.release) || slices.ContainsFunc(delivery.others, is)
}

// setAll sets the releases of the deployment, the current one first.
func (delivery *delivery) setAll(releases []release.Summary) {
	delivery.release, delivery.others = nil, nil
	if len(releases) > 0 {
		delivery.release, delivery.others = &releases[0], releases[1:]
	}
}

// choose makes a deployed release the current one, in the wanted place if possible.
func (d *Deployer) choose(name string, delivery *delivery, wanted release.ID) {
	if len(delivery.others) == 0 {
		return
	}
	all := append([]release.Summary{*delivery.release}, delivery.others...)
	best := slices.IndexFunc(all, func(s release.Summary) bool { return s.Deployed && s.ID() == wanted })
	if best < 0 {
		best = slices.IndexFunc(all, func(s release.Summary) bool { return s.Deployed })
	}
	if best > 0 {
		all[0], all[best] = all[best], all[0]
		d.setReleases(name, delivery, all)
	}
}

// dropRelease forgets a removed release of a deployment.
func (d *Deployer) dropRelease(name string, delivery *delivery, gone release.Summary) {
	all := append([]release.Summary{*delivery.release}, delivery.others...)
	d.setReleases(name, delivery, slices.DeleteFunc(all, func(s release.Summary) bool {
		return s.ID() == gone.ID() && s.History == gone.History
	}))
}

// setReleases sets the releases of a deployment, and forgets the objects of the previous one.
func (d *Deployer) setReleases(name string, delivery *delivery, releases []release.Summary) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delivery.removingSince = time.Time{}
	delivery.setAll(releases)
	for _, object := range delivery.watched {
		delete(d.owners[object], name)
		if len(d.owners[object]) == 0 {
			delete(d.owners, object)
		}
	}
	delivery.set, delivery.watched = nil, nil
}
