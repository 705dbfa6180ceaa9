package deploy

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/deploy/live"
	"github.com/muster-fleet/muster/internal/deploy/release"
)

// seen is what was observed, and what reports and acts need beside it.
type seen struct {
	observed
	// deployment is nil if there is none.
	deployment *fleet.BundleDeployment
	// objects are how those of the release are, if it is what is wanted; unwatched says why that could not be found out.
	objects   live.Observation
	unwatched string
	// contested says that somebody keeps changing what is corrected.
	contested bool
}

func (d *Deployer) observe(ctx context.Context, name string, of *delivery) seen {
	woken, lost := d.awaited.take(name)
	if woken {
		of.failure.retryAt = time.Time{}
	}
	if lost {
		d.relook(ctx, name, of)
	}
	deployment := d.store.get(name)
	s := seen{deployment: deployment, observed: observed{member: d.Member, failure: of.failure, correctAt: of.correctAt},
		contested: of.contested(d.Clock.Now())}
	if deployment != nil {
		d.mu.Lock()
		of.seen, of.workspace = true, deployment.Labels[fleet.LabelBundleNamespace]
		d.mu.Unlock()
		if of.uid != deployment.UID {
			of.uid, of.written = deployment.UID, nil
		}
		s.fill(deployment)
		s.waiting = waitingFor(deployment, d.store.all())
	}
	s.seen = of.seen
	if crashed := d.Attempts.crashed(name, deployment); d.Clock.Now().Before(crashed.retryAt) {
		s.failure, s.crashed = crashed, true
	}
	if of.release == nil {
		return s
	}
	if s.otherWorkspace = of.otherWorkspace(); s.otherWorkspace && deployment != nil {
		return s // the release of a Bundle of the same name; whether it is in the way is found out by deploying
	}
	s.found, s.release = true, *of.release
	s.gone = d.gone(name, of, s.wanted)
	if deployment != nil && (deployment.Spec.Options.Helm == nil || deployment.Spec.Options.Helm.ReleaseName == "") {
		// Whoever made the release derived its name, in whatever way.
		s.name = s.release.Name
	}
	if s.wanted && !s.misplaced() {
		d.mu.Lock()
		of.leaving = time.Time{} // it came back before it was removed
		d.mu.Unlock()
	}
	if s.wanted && s.held == "" && s.unsupported == "" && !s.crashed && s.current() {
		s.look(ctx, d, of)
	}
	return s
}

// otherWorkspace says whether the release is that of a Bundle of another workspace than the BundleDeployment that was seen.
func (of *delivery) otherWorkspace() bool {
	return of.workspace != "" && of.release.Workspace != "" && of.workspace != of.release.Workspace
}

// ours says whether there is a release that goes when its BundleDeployment does.
func (of *delivery) ours(member string) bool {
	return of.release != nil && (of.seen && !of.otherWorkspace() || of.release.Member == member)
}

// fill adds what the BundleDeployment says.
func (s *seen) fill(deployment *fleet.BundleDeployment) {
	spec := deployment.Spec
	s.wanted = deployment.DeletionTimestamp == nil
	s.generation = deployment.Generation
	s.deploymentID, s.syncGeneration = spec.DeploymentID, spec.Options.ForceSyncGeneration
	s.applied = deployment.Status.AppliedDeploymentID
	if generation := deployment.Status.SyncGeneration; generation != nil {
		s.appliedSync = *generation
	}
	s.held, s.unsupported = heldBecause(spec), unsupportedIn(spec)
	s.name, s.namespace = release.Name(deployment.Name), release.Namespace(spec.Options)
	if helm := spec.Options.Helm; helm != nil && helm.ReleaseName != "" {
		s.name = helm.ReleaseName
	}
	if correct := correction(spec); correct != nil {
		s.correct = correct.Enabled
	}
}

// look asks how the objects of the release are.
func (s *seen) look(ctx context.Context, d *Deployer, of *delivery) {
	if err := d.follow(ctx, s.deployment.Name, of); err != nil {
		s.unwatched = err.Error()
		if isNoMatch(err) {
			d.awaitKind(s.deployment.Name)
		}
		return
	}
	objects, err := d.watcher.Observe(ctx, of.set, s.deployment.Spec.Options)
	switch {
	case err != nil:
		s.unwatched = err.Error()
	case objects.Unsynced != "":
		s.unwatched = objects.Unsynced
	default:
		s.objects, s.modified = objects, objects.Changed
	}
	if s.modified == 0 || !isAgent(s.deployment) {
		return
	}
	// The release of the agent is a user's, too, who may have upgraded it: then nothing was changed by hand, and it is adopted anew.
	switch overtaken, err := d.Cluster.Overtaken(ctx, s.release); {
	case err != nil:
		s.unwatched = err.Error()
	case overtaken:
		s.release.Deployed, s.modified, s.objects = false, 0, live.Observation{}
	}
}

// isAgent says whether a BundleDeployment is that of the agent itself.
func isAgent(deployment *fleet.BundleDeployment) bool {
	return deployment != nil && deployment.Labels[fleet.LabelAgent] != ""
}

// rests says whether it is the agent's own release and well, so that nothing has to be watched.
func (s seen) rests() bool {
	return isAgent(s.deployment) && s.unwatched == "" && s.modified == 0 && s.objects.Counts.NotReady == 0 && s.objects.Counts.Missing == 0
}

func correction(spec fleet.BundleDeploymentSpec) *fleet.CorrectDrift {
	if spec.CorrectDrift != nil {
		return spec.CorrectDrift
	}
	return spec.Options.CorrectDrift
}

func heldBecause(spec fleet.BundleDeploymentSpec) string {
	switch {
	case spec.Paused:
		return "it is paused"
	case spec.OffSchedule:
		return "it is outside of its schedule"
	case spec.WaitingForValues:
		return "the hub has not written its values yet"
	case spec.DeploymentID == "":
		return "the rollout has not reached this cluster yet"
	}
	return ""
}

// unsupportedIn names the first field that asks for what is not implemented.
func unsupportedIn(spec fleet.BundleDeploymentSpec) string {
	const notImplemented = " is not implemented by this agent: "
	switch {
	case spec.OCIContents:
		return "spec.ociContents" + notImplemented + "let the hub store the resources as a Content"
	case spec.HelmChartOptions != nil:
		return "spec.helmChartOptions" + notImplemented + "put the files of the chart into a Bundle"
	case len(spec.Options.DownstreamResources) > 0:
		return "spec.options.downstreamResources" + notImplemented + "put the Secrets and ConfigMaps into the Bundle, or make them downstream"
	case len(spec.Options.Overwrites) > 0:
		return "spec.options.overwrites" + notImplemented + "use helm.takeOwnership"
	}
	return ""
}

// waitingFor says which of the deployments that this one depends on is not there yet; empty if all are.
func waitingFor(deployment *fleet.BundleDeployment, all []*fleet.BundleDeployment) string {
	for _, ref := range deployment.Spec.DependsOn {
		accepted := ref.AcceptedStates
		if len(accepted) == 0 {
			accepted = []fleet.BundleState{fleet.StateReady}
		}
		matched, sentence := matching(deployment, ref, all)
		if sentence != "" {
			return sentence
		}
		for _, other := range matched {
			if state := stateOf(other); !slices.Contains(accepted, state) {
				return fmt.Sprintf("waiting for Bundle %s, which is %s on this cluster and has to be %v", bundleOf(other), state, accepted)
			}
		}
	}
	return ""
}

// matching finds the deployments that a reference means, or says that there is none.
func matching(deployment *fleet.BundleDeployment, ref fleet.BundleRef, all []*fleet.BundleDeployment) ([]*fleet.BundleDeployment, string) {
	selector := labels.Nothing()
	if ref.Selector != nil {
		parsed, err := metav1.LabelSelectorAsSelector(ref.Selector)
		if err != nil {
			return nil, fmt.Sprintf("spec.dependsOn has a selector that is none: %v", err)
		}
		selector = parsed
	}
	var matched []*fleet.BundleDeployment
	for _, other := range all {
		if other.Name == deployment.Name || other.Labels[fleet.LabelBundleNamespace] != deployment.Labels[fleet.LabelBundleNamespace] {
			continue
		}
		if ref.Name != "" && bundleOf(other) == ref.Name || ref.Selector != nil && selector.Matches(labels.Set(other.Labels)) {
			matched = append(matched, other)
		}
	}
	switch {
	case len(matched) > 0:
		return matched, ""
	case ref.Name != "":
		return nil, fmt.Sprintf("waiting for Bundle %s, which is not deployed to this cluster", ref.Name)
	default:
		return nil, fmt.Sprintf("waiting for Bundles with labels %s, of which none is deployed to this cluster", selector)
	}
}

// bundleOf is the name of the Bundle of a deployment.
func bundleOf(deployment *fleet.BundleDeployment) string {
	if name := deployment.Labels[fleet.LabelBundleName]; name != "" {
		return name
	}
	return deployment.Name
}

// stateOf is how a deployment stands by its status.
func stateOf(deployment *fleet.BundleDeployment) fleet.BundleState {
	if deployment.Status.AppliedDeploymentID != deployment.Spec.DeploymentID || deployment.Status.Display.State == "" {
		return fleet.StateWaitApplied
	}
	return fleet.BundleState(deployment.Status.Display.State)
}
