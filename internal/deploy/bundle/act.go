package bundle

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/deploy/drift"
	"github.com/muster-fleet/muster/internal/deploy/release"
	"github.com/muster-fleet/muster/internal/deploy/render"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
)

// reasonedError is an error with a reason for a condition.
type reasonedError struct {
	reason string
	err    error
}

func (e *reasonedError) Error() string { return e.err.Error() }
func (e *reasonedError) Unwrap() error { return e.err }

func withReason(reason string, err error) error {
	if err == nil {
		return nil
	}
	return &reasonedError{reason: reason, err: err}
}

// act carries out a decision.
func (d *Deployer) act(ctx context.Context, name string, delivery *delivery, s observation, decision decision) error {
	// The deployer does not cancel a running Helm operation: the next deployer would have to repair
	// the release.
	going := context.WithoutCancel(ctx)
	switch decision.State {
	case Confirming:
		if decision.Wake.IsZero() {
			d.confirm(going, name, delivery)
		}
	case Kept:
		return d.keep(going, name, delivery, s)
	case Removing:
		// The wait for a free worker may have taken long, so the last confirmation may be old.
		if d.confirm(going, name, delivery) {
			delivery.attempt.waits(uninstallTimeout)
			d.watchRemoval(ctx, name, delivery, *delivery.release)
			return d.prune(going, name, delivery)
		}
	case Moving:
		return d.move(going, name, delivery, s)
	case Deploying:
		return d.deploy(going, name, delivery, s)
	case Correcting:
		return d.correct(going, delivery, s)
	case Watching:
		if decision.Wake.IsZero() {
			return d.setMember(going, name, delivery, s.deployment)
		}
	case Gone, Held, Unsupported, Waiting, Failed:
	}
	return nil
}

// setMember labels a release with this member. The deployer then recognizes it after its
// BundleDeployment is deleted.
func (d *Deployer) setMember(ctx context.Context, name string, delivery *delivery, deployment *fleet.BundleDeployment) error {
	uid, version := string(deployment.UID), deployment.ResourceVersion
	if delivery.release.Member == d.Member && delivery.release.HubUID == uid && !delivery.release.HubRestored || delivery.release.Agent {
		return nil
	}
	if err := d.Cluster.SetMember(ctx, *delivery.release, d.owner(name, delivery), uid, version); err != nil {
		return err
	}
	labelled := *delivery.release
	labelled.Member, labelled.HubUID, labelled.HubVersion, labelled.HubRestored = d.Member, uid, version, false
	d.mu.Lock()
	defer d.mu.Unlock()
	delivery.release = &labelled
	return nil
}

// deploy installs or upgrades a release, and reports a long operation.
func (d *Deployer) deploy(ctx context.Context, name string, delivery *delivery, s observation) error {
	if err := d.confirmNewest(ctx, delivery, s.deployment); err != nil {
		return err
	}
	delivery.attempt.waits(turnTimeout)
	request, hooks, err := d.request(ctx, s)
	if err != nil {
		return err
	}
	request.Before, request.Leaving = around(delivery, request.ID(), s.adopts)
	if delivery.release != nil && delivery.release.SyncGeneration == s.syncGeneration { // else the user has everything deployed again
		request.Jobs = delivery.release.Jobs
	}
	request.Rendered = func() { delivery.attempt.waits(operationTimeout(request, hooks)) }
	doing := fmt.Sprintf("release %s/%s is being installed or upgraded: Helm waits for its hooks or objects", s.namespace, s.name)
	reported := d.reportLong(ctx, delivery, s, decision{State: Deploying, Reason: doing})
	deployed, err := d.Cluster.Deploy(ctx, request)
	reported()
	if err != nil {
		// The history has the outcome.
		d.rereadHistory(ctx, name, delivery)
		if ended := (*render.Ended)(nil); errors.As(err, &ended) {
			return withReason(reasons.DeployerCrashed, ended)
		}
		if terminating := (*release.TerminatingNamespace)(nil); errors.As(err, &terminating) {
			return withReason(reasons.NamespaceTerminating, terminating)
		}
		if release.IsForeign(err) {
			return withReason(reasons.ReleaseConflict, fmt.Errorf("%w: give the release of Bundle %s another name by helm.releaseName", err, name))
		}
		if refused := (*release.CRDConflict)(nil); errors.As(err, &refused) {
			return withReason(reasons.CRDConflict, refused)
		}
		return withReason(reasons.DeployFailed, release.ExplainImmutable(d.explainConflict(name, request.ID(), err)))
	}
	d.Log.Info("Release deployed", "deployment", name, "release", deployed.String())
	d.setReleases(name, delivery, append([]release.Summary{deployed}, settled(request.Leaving)...))
	return nil
}

// confirmNewest returns an error if the release was made from a newer BundleDeployment. It returns
// nil if the hub has no newer one, for example after a restore.
//
// A lagging API server may send an earlier state to an agent at its start. An upgrade to this state
// would remove everything added since.
func (d *Deployer) confirmNewest(ctx context.Context, delivery *delivery, deployment *fleet.BundleDeployment) error {
	if delivery.release == nil || !applied.Older(deployment.ResourceVersion, delivery.release.HubVersion) {
		return nil
	}
	deployments, err := d.Hub.Deployments()
	if err != nil {
		return err
	}
	now, err := deployments.Get(ctx, deployment.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("release %s stays as it is until the hub confirms an older BundleDeployment: %w", delivery.release, err)
	}
	if now.UID != deployment.UID || now.Generation != deployment.Generation {
		return fmt.Errorf("release %s stays as it is: the hub has generation %d of its BundleDeployment, and sent generation %d to this agent",
			delivery.release, now.Generation, deployment.Generation)
	}
	return nil
}

// rereadHistory reads the releases of a deployment from their history.
func (d *Deployer) rereadHistory(ctx context.Context, name string, delivery *delivery) {
	among := delivery.all()
	if deployment := d.store.get(name); deployment != nil {
		among = append(among, d.wantedRelease(deployment))
	}
	if found, err := d.Cluster.FindReleases(ctx, name, among...); err == nil { // else the releases in memory count until the next attempt
		d.setReleases(name, delivery, found)
	}
}

// explainConflict names the Bundle or release with the conflicting object.
func (d *Deployer) explainConflict(name string, deployed release.ID, err error) error {
	if labels := (*release.NamespaceConflict)(nil); errors.As(err, &labels) {
		return withReason(reasons.ObjectConflict, labels)
	}
	conflict, ok := release.ConflictIn(err, deployed)
	if !ok {
		return err
	}
	object := kube.Name(conflict.Kind, conflict.Namespace, conflict.Name)
	owner := "already exists and belongs to no release"
	if conflict.Release != (release.ID{}) {
		owner = fmt.Sprintf("belongs to release %s", conflict.Release)
		d.mu.Lock()
		for bundle, of := range d.deliveries {
			if of.release != nil && of.release.ID() == conflict.Release {
				owner = fmt.Sprintf("belongs to Bundle %s (release %s)", bundle, conflict.Release)
			}
		}
		d.mu.Unlock()
	}
	return withReason(reasons.ObjectConflict, fmt.Errorf("%s cannot be deployed with Bundle %s, because it %s: remove it from one of them, "+
		"or set helm.takeOwnership in the one that should have it",
		object, name, owner))
}

// explain returns the innermost reason and the message of an error.
func (d *Deployer) explain(err error) (reason, message string) {
	reason = reasons.Error
	for inner := err; ; {
		var staged *reasonedError
		if !errors.As(inner, &staged) {
			return reason, kube.ShortenValues(err.Error())
		}
		reason, inner = staged.reason, staged.err
	}
}

// watchObjects reads the manifests of a release and watches its objects.
func (d *Deployer) watchObjects(ctx context.Context, name string, delivery *delivery) error {
	if delivery.set != nil {
		return nil
	}
	objects, err := d.Cluster.Objects(ctx, *delivery.release)
	if err != nil {
		return err
	}
	set, err := d.detector.NewSet(*delivery.release, objects)
	if err != nil {
		return err
	}
	if err := d.addFormer(ctx, delivery, set, objects); err != nil {
		return err
	}
	d.watch(name, delivery, set)
	return nil
}

// watch watches the objects of a release.
func (d *Deployer) watch(name string, delivery *delivery, set *drift.Set) {
	d.mu.Lock()
	delivery.set, delivery.watched = set, nil
	for _, key := range set.Keys() {
		object := key.Object()
		delivery.watched = append(delivery.watched, object)
		if d.owners[object] == nil {
			d.owners[object] = map[string]bool{}
		}
		d.owners[object][name] = true
	}
	d.mu.Unlock()
	d.detector.Use(name, set)
}
