package deploy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	helm "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	contents "github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/deploy/chart"
	"github.com/muster-fleet/muster/internal/deploy/live"
	"github.com/muster-fleet/muster/internal/deploy/release"
)

// agentBundle is how the names of the Bundles begin by which upstream's agents are managed: removing one would remove who removes it.
const agentBundle = "fleet-agent"

// stageError is an error with the reason that a condition gives for it.
type stageError struct {
	reason string
	err    error
}

func (e *stageError) Error() string { return e.err.Error() }
func (e *stageError) Unwrap() error { return e.err }

func stage(reason string, err error) error {
	if err == nil {
		return nil
	}
	return &stageError{reason: reason, err: err}
}

// act does what was decided.
func (d *Deployer) act(ctx context.Context, name string, of *delivery, s seen, decision decision) error {
	// What Helm began it finishes, or the next deployer does.
	going := context.WithoutCancel(ctx)
	switch decision.State {
	case Confirming:
		if decision.Wake.IsZero() {
			d.confirm(going, name, of)
		}
	case Kept:
		return d.keep(going, name, of)
	case Removing:
		// The answer of before may be old: a worker was not free at once.
		if d.confirm(going, name, of) {
			of.attempt.goesOn(uninstallTimeout)
			d.watchLeaving(ctx, name, of)
			return d.prune(going, name, of)
		}
	case Moving:
		of.attempt.goesOn(uninstallTimeout)
		d.watchLeaving(ctx, name, of)
		return stage("MoveFailed", d.takeAway(going, name, of))
	case Deploying:
		return d.deploy(going, name, of, s)
	case Correcting:
		correct := correction(s.deployment.Spec)
		if err := d.watcher.Correct(going, of.set, correct.Force); err != nil {
			return stage("CorrectionFailed", fmt.Errorf("it could not be corrected: %w", err))
		}
		of.corrected(d.Clock.Now())
		d.Log.Info("drift corrected", "deployment", name, "objects", s.modified)
	case Watching:
		if decision.Wake.IsZero() {
			return d.claim(going, name, of)
		}
	case Gone, Held, Unsupported, Waiting, Failed:
	}
	return nil
}

// claim notes that a release is this member's, so that it is known as that when its BundleDeployment goes.
func (d *Deployer) claim(ctx context.Context, name string, of *delivery) error {
	if of.release.Member == d.Member && !of.release.HubRestored || of.release.Agent {
		return nil
	}
	if err := d.Cluster.Claim(ctx, *of.release, d.owner(name, of)); err != nil {
		return err
	}
	claimed := *of.release
	claimed.Member, claimed.HubRestored = d.Member, false
	d.mu.Lock()
	defer d.mu.Unlock()
	of.release = &claimed
	return nil
}

// deploy installs or upgrades, and says so if that takes long.
func (d *Deployer) deploy(ctx context.Context, name string, of *delivery, s seen) error {
	request, err := d.request(ctx, s)
	if err != nil {
		return err
	}
	done, said := make(chan struct{}), make(chan *fleet.BundleDeploymentStatus, 1)
	timer := d.Clock.NewTimer(patience)
	go func() {
		defer timer.Stop()
		select {
		case <-done:
			said <- nil
		case <-timer.C():
			said <- d.progress(ctx, name, s)
		}
	}()
	request.Rendered = func() { of.attempt.rendered(operationTimeout(request)) }
	of.attempt.renders()
	made, err := d.Cluster.Deploy(ctx, request)
	close(done)
	if status := <-said; status != nil {
		of.written = status
	}
	if err != nil {
		// The history says what became of it.
		d.relook(ctx, name, of)
		if release.IsForeign(err) {
			return stage("ReleaseConflict", fmt.Errorf("%w: give the release of Bundle %s another name by helm.releaseName", err, name))
		}
		return stage("DeployFailed", d.blame(ctx, name, err))
	}
	d.Log.Info("release deployed", "deployment", name, "release", made.String())
	d.hold(name, of, &made)
	return nil
}

// relook asks the histories what became of the release of a deployment.
func (d *Deployer) relook(ctx context.Context, name string, of *delivery) {
	found, err := d.Cluster.List(ctx)
	if err != nil {
		return // what is remembered stands until the next attempt
	}
	d.hold(name, of, nil)
	if left, ok := found.Releases[name]; ok {
		d.hold(name, of, &left)
	}
}

// progress reports a deployment that goes on, and returns what it reported.
func (d *Deployer) progress(ctx context.Context, name string, s seen) *fleet.BundleDeploymentStatus {
	decision := decision{State: Deploying, Reason: fmt.Sprintf("release %s/%s is being installed or upgraded: Helm waits for its hooks or objects", s.namespace, s.name)}
	status := statusOf(decision, s, d.Clock.Now())
	patch, err := patchOf(status)
	if err == nil {
		err = d.Hub.ReportDeployment(ctx, name, patch)
	}
	if err != nil {
		d.Log.Info("reporting a deployment failing", "deployment", name, "reason", d.Hub.Explain(err))
		return nil
	}
	return &status
}

// request gathers what the release is made of.
func (d *Deployer) request(ctx context.Context, s seen) (release.Request, error) {
	spec := s.deployment.Spec
	content := contents.ContentName(spec.DeploymentID)
	packed, err := d.Hub.Content(ctx, content)
	if err != nil {
		return release.Request{}, stage("ContentUnreadable", fmt.Errorf("reading Content %s on the hub: %s", content, d.Hub.Explain(err)))
	}
	resources, err := contents.Unpack(packed)
	if err != nil {
		return release.Request{}, stage("ContentRefused", err)
	}
	files, err := chart.Decode(resources)
	if err != nil {
		return release.Request{}, stage("ContentRefused", err)
	}
	var fetched *helm.Chart
	if chart.Elsewhere(files, spec.Options) {
		if fetched, err = d.charts.Fetch(ctx, *spec.Options.Helm); err != nil {
			return release.Request{}, stage("ChartUnreadable", err)
		}
	}
	made, values, err := chart.Build(files, fetched, release.Name(s.deployment.Name), content, spec.Options)
	var unsupported *chart.Unsupported
	if errors.As(err, &unsupported) {
		return release.Request{}, stage(reasonMissing, err)
	}
	if err != nil {
		return release.Request{}, stage("ResourcesInvalid", err)
	}
	from, err := d.Cluster.ValuesFrom(ctx, spec.Options, s.namespace)
	if err != nil {
		return release.Request{}, stage("ValuesInvalid", err)
	}
	own, err := d.values(ctx, s.deployment)
	if err != nil {
		return release.Request{}, stage("ValuesInvalid", err)
	}
	return release.Request{
		Bundle: s.deployment.Name, Workspace: s.deployment.Labels[fleet.LabelBundleNamespace], Release: s.name, Namespace: s.namespace, Chart: made, Options: spec.Options,
		// As with Rancher Fleet's agents, what the cluster itself has wins over what the Bundle says.
		Values:       loader.MergeMaps(loader.MergeMaps(values, own), from),
		DeploymentID: spec.DeploymentID, Commit: s.deployment.Labels[fleet.LabelCommit], Member: d.Member,
		Version: s.deployment.ResourceVersion, Agent: isAgent(s.deployment),
	}, nil
}

// values are those of the options, which the hub keeps in a Secret of the deployment's name.
func (d *Deployer) values(ctx context.Context, deployment *fleet.BundleDeployment) (map[string]any, error) {
	var encoded []byte
	if helm := deployment.Spec.Options.Helm; helm != nil && helm.Values != nil {
		encoded = helm.Values.Raw
	}
	where := "spec.options.helm.values"
	if deployment.Spec.ValuesHash != "" {
		where = "secret " + deployment.Namespace + "/" + deployment.Name + " on the hub"
		secret, err := d.Hub.Secret(ctx, deployment.Name)
		if err != nil {
			return nil, fmt.Errorf("reading the values in %s: %s", where, d.Hub.Explain(err))
		}
		if contents.ValuesHash(secret.Data) != deployment.Spec.ValuesHash {
			return nil, fmt.Errorf("the values in %s are not those that spec.valuesHash announces: waiting for the hub to write them", where)
		}
		encoded = secret.Data[fleet.KeyValues]
	}
	values := map[string]any{}
	if len(encoded) == 0 {
		return values, nil
	}
	if err := json.Unmarshal(encoded, &values); err != nil {
		// The error of the parser may quote what it could not parse.
		return nil, fmt.Errorf("%s holds no JSON object", where)
	}
	return values, nil
}

// blame says of an object that another release has which Bundle that is.
func (d *Deployer) blame(ctx context.Context, name string, err error) error {
	conflict, ok := release.ConflictIn(err)
	if !ok {
		return err
	}
	object := object(conflict.Kind, conflict.Namespace, conflict.Name)
	owner := "is there already and belongs to no release"
	if conflict.Release != "" {
		owner = "belongs to release " + conflict.Release
		if found, listErr := d.Cluster.List(ctx); listErr == nil {
			for bundle, summary := range found.Releases {
				if summary.Name == conflict.Release {
					owner = fmt.Sprintf("belongs to Bundle %s (release %s)", bundle, conflict.Release)
				}
			}
		}
	}
	return stage("ObjectConflict", fmt.Errorf("%s, which Bundle %s wants, %s: take it out of one of them, or set helm.takeOwnership on the one that is to have it",
		object, name, owner))
}

// explain is the reason and the message of an error.
func (d *Deployer) explain(err error) (reason, message string) {
	reason = reasonError
	for inner := err; ; {
		var staged *stageError
		if !errors.As(inner, &staged) {
			return reason, err.Error()
		}
		reason, inner = staged.reason, staged.err
	}
}

// follow looks up the objects of a release and watches their kinds.
func (d *Deployer) follow(ctx context.Context, name string, of *delivery) error {
	if of.set != nil {
		return nil
	}
	objects, err := d.Cluster.Objects(ctx, *of.release)
	if err != nil {
		return err
	}
	set, err := d.watcher.NewSet(*of.release, objects)
	if err != nil {
		return err
	}
	d.watch(ctx, name, of, set)
	return nil
}

// watch follows the objects of a release.
func (d *Deployer) watch(ctx context.Context, name string, of *delivery, set *live.Set) {
	d.mu.Lock()
	of.set = set
	for _, key := range set.Keys() {
		if d.owners[key] == nil {
			d.owners[key] = map[string]bool{}
		}
		d.owners[key][name] = true
	}
	d.mu.Unlock()
	d.rewatch(ctx)
}

// hold remembers another release, or none, and forgets the objects of the last one.
func (d *Deployer) hold(name string, of *delivery, s *release.Summary) {
	d.mu.Lock()
	defer d.mu.Unlock()
	of.release, of.leaving = s, time.Time{}
	if of.set == nil {
		return
	}
	for _, key := range of.set.Keys() {
		delete(d.owners[key], name)
		if len(d.owners[key]) == 0 {
			delete(d.owners, key)
		}
	}
	of.set = nil
}

func (d *Deployer) rewatch(ctx context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var keys [][]live.Key
	for _, of := range d.deliveries {
		if of.set != nil {
			keys = append(keys, of.set.Keys())
		}
	}
	d.watcher.Watch(ctx, live.Kinds(keys...))
}
