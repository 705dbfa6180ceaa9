package bundle

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	contents "github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/deploy/drift"
	"github.com/muster-fleet/muster/internal/deploy/release"
	"github.com/muster-fleet/muster/internal/retry"
)

// observation is the input of decide, with further input for act and report.
type observation struct {
	observed
	// deployment is nil if there is none.
	deployment *fleet.BundleDeployment
	// objects are the observed objects of a current release; unwatched is the reason if they cannot be
	// observed.
	objects   drift.Observation
	unwatched string
	// crds are the definitions that differ from crds/ of the chart.
	crds release.CRDDifference
	// contested is set if drift comes back after each correction.
	contested bool
}

func (d *Deployer) observe(ctx context.Context, name string, delivery *delivery) observation {
	wokenUp, lost := d.wakeups.take(name)
	if wokenUp {
		delivery.failure.retryAt = time.Time{}
	}
	if lost {
		d.rereadHistory(ctx, name, delivery)
	}
	deployment := d.store.get(name)
	if deployment != nil && delivery.uid != deployment.UID {
		delivery.uid, delivery.written = deployment.UID, nil
		delivery.failure, delivery.backoff = failure{}, retry.Failed() // of an earlier one of the name
	}
	s := observation{deployment: deployment, observed: observed{member: d.Member, failure: delivery.failure, correctAt: delivery.correctAt},
		contested: delivery.contested(d.Clock.Now())}
	if deployment != nil {
		d.mu.Lock()
		delivery.known, delivery.workspace = true, deployment.Labels[fleet.LabelBundleNamespace]
		d.mu.Unlock()
		s.fill(deployment, d.wantedRelease(deployment))
		if d.OnlyAgent && !isAgent(deployment) {
			s.unsupported = "a MemberCluster gets only its own agent by a BundleDeployment: delete it, and use a placement"
		}
		if other := contents.OtherRecipient(deployment.Labels, d.Hub.Namespace, d.Hub.Name); other != "" {
			s.unsupported = fmt.Sprintf("it is labelled for %s, and nothing of it is deployed on this member: delete it, or take the labels off",
				other)
		}
		s.waiting = waitingFor(deployment, d.store.all())
	}
	s.known = delivery.known
	if crashed := d.Attempts.crashed(name, deployment); d.Clock.Now().Before(crashed.retryAt) {
		s.failure, s.crashed = crashed, true
	}
	if delivery.release == nil {
		return s
	}
	if s.otherWorkspace = delivery.otherWorkspace(); s.otherWorkspace && deployment != nil {
		return s // the release of a Bundle of the same name; only deploying finds a conflict
	}
	if s.wanted {
		d.choose(name, delivery, release.ID{Namespace: s.namespace, Name: s.name})
	}
	s.found, s.release, s.inherited = true, *delivery.release, delivery.inherited()
	s.others, s.superseded = len(delivery.others), slices.ContainsFunc(delivery.others, delivery.release.SupersededBy)
	s.observeLost(d, name, delivery)
	s.confirmation = d.confirmation(name, delivery, s.wanted)
	if s.wanted && !s.moving() {
		d.mu.Lock()
		delivery.removingSince = time.Time{} // it came back before its removal
		d.mu.Unlock()
	}
	if s.wanted && s.held == "" && s.unsupported == "" && !s.crashed && s.current() && !s.moving() {
		s.observeObjects(ctx, d, delivery)
	}
	return s
}

// otherWorkspace reports whether the release belongs to a Bundle in another workspace than the
// BundleDeployment.
func (delivery *delivery) otherWorkspace() bool {
	return delivery.workspace != "" && delivery.release.Workspace != "" && delivery.workspace != delivery.release.Workspace
}

// ours reports whether the deployer removes the release when its BundleDeployment is deleted.
func (delivery *delivery) ours(member string) bool {
	return delivery.release != nil &&
		(delivery.known && !delivery.otherWorkspace() || delivery.release.Member == member || delivery.inherited())
}

// inherited reports whether the newest revision has neither workspace nor deployment ID, as with an
// upstream agent. Such a release may belong to this member. A member label proves nothing here,
// because Helm copies labels from the previous revision.
func (delivery *delivery) inherited() bool {
	s := delivery.release
	return s.Workspace == "" && s.DeploymentID == "" && !s.Agent && !delivery.absence.predates
}

// fill adds the fields of the BundleDeployment.
func (s *observation) fill(deployment *fleet.BundleDeployment, wanted release.ID) {
	spec := deployment.Spec
	s.wanted = deployment.DeletionTimestamp == nil
	s.generation = deployment.Generation
	s.deploymentID, s.syncGeneration = spec.DeploymentID, spec.Options.ForceSyncGeneration
	s.applied = deployment.Status.AppliedDeploymentID
	if generation := deployment.Status.SyncGeneration; generation != nil {
		s.appliedSync = *generation
	}
	s.held, s.unsupported = heldBecause(spec), unsupportedIn(spec)
	s.name, s.namespace = wanted.Name, wanted.Namespace
	s.adopts = spec.Options.Helm == nil || spec.Options.Helm.ReleaseName == "" || spec.Options.Helm.TakeOwnership
	if correct := correction(spec); correct != nil {
		s.correct = correct.Enabled
	}
}

// observeObjects adds the state of the objects of the release.
func (s *observation) observeObjects(ctx context.Context, d *Deployer, delivery *delivery) {
	var err error
	if s.crds, err = d.observeCRDs(ctx, delivery); err != nil {
		s.unwatched = err.Error()
		return
	}
	if err := d.watchObjects(ctx, s.deployment.Name, delivery); err != nil {
		s.unwatched = err.Error()
		if isNotServed(err) {
			d.waitForKind(s.deployment.Name)
		}
		return
	}
	objects, err := d.detector.Observe(ctx, delivery.set, s.deployment.Spec.Options, d.Clock.Now())
	switch {
	case err != nil:
		s.unwatched = err.Error()
	case objects.Unsynced != "":
		s.unwatched = objects.Unsynced
	default:
		s.objects, s.modified = objects, objects.Correctable
		d.noteCompared(ctx, delivery)
		d.noteJobs(ctx, delivery)
	}
	if s.objects.Changed == 0 || !isAgent(s.deployment) {
		return
	}
	// A user may have upgraded the agent's own release. This is no drift: the deployer adopts the
	// release again.
	switch overtaken, err := d.Cluster.Overtaken(ctx, s.release); {
	case err != nil:
		s.unwatched = err.Error()
	case overtaken:
		s.release.Deployed, s.modified, s.objects = false, 0, drift.Observation{}
	}
}

// addFormer watches the remaining objects of earlier revisions.
func (d *Deployer) addFormer(ctx context.Context, delivery *delivery, set *drift.Set, objects []*unstructured.Unstructured) error {
	if delivery.release.Version < 2 {
		return nil
	}
	former, err := d.Cluster.Former(*delivery.release, objects)
	if err != nil {
		return err
	}
	return d.detector.AddFormer(ctx, set, former)
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
		return "it is outside of the windows of its Schedules"
	case spec.WaitingForValues:
		return "the hub has not written its values yet"
	case spec.DeploymentID == "":
		return "the rollout has not reached this cluster yet"
	}
	return ""
}

// unsupportedIn names the first unimplemented field.
func unsupportedIn(spec fleet.BundleDeploymentSpec) string {
	const notImplemented = " is not implemented by this agent: "
	switch {
	case spec.OCIContents:
		return "spec.ociContents" + notImplemented + "let the hub store the resources as a Content"
	case spec.HelmChartOptions != nil:
		return "spec.helmChartOptions" + notImplemented + "put the files of the chart into a Bundle"
	case len(spec.Options.Overwrites) > 0:
		return "spec.options.overwrites" + notImplemented + "use helm.takeOwnership"
	}
	return ""
}

// waitingFor names the dependencies of a deployment without an accepted state; empty if there are
// none.
func waitingFor(deployment *fleet.BundleDeployment, deployments []*fleet.BundleDeployment) string {
	var missing []string
	for _, ref := range deployment.Spec.DependsOn {
		accepted := ref.AcceptedStates
		if len(accepted) == 0 {
			accepted = []fleet.BundleState{fleet.StateReady}
		}
		matched, sentence := matching(deployment, ref, deployments)
		if sentence != "" {
			missing = append(missing, sentence)
		}
		for _, other := range matched {
			if state := contents.StateOf(other); !slices.Contains(accepted, state) {
				missing = append(missing,
					fmt.Sprintf("waiting for Bundle %s, which is %s on this cluster and must be %v", bundleOf(other), state, accepted))
			}
		}
	}
	return strings.Join(missing, "; ")
}

// matching finds the deployments of a reference, or explains why there is none.
func matching(deployment *fleet.BundleDeployment, ref fleet.BundleRef,
	deployments []*fleet.BundleDeployment) (matched []*fleet.BundleDeployment, why string) {
	selector := labels.Nothing()
	if ref.Selector != nil {
		parsed, err := metav1.LabelSelectorAsSelector(ref.Selector)
		if err != nil {
			return nil, fmt.Sprintf("spec.dependsOn has a selector that is none: %v", err)
		}
		selector = parsed
	}
	for _, other := range deployments {
		if other.Name == deployment.Name || other.Labels[fleet.LabelBundleNamespace] != deployment.Labels[fleet.LabelBundleNamespace] {
			continue
		}
		named := ref.Name != "" && (ref.Name == bundleOf(other) || ref.Name == other.Name) // the label of a long name is cut
		if named || ref.Selector != nil && selector.Matches(labels.Set(other.Labels)) {
			matched = append(matched, other)
		}
	}
	switch {
	case len(matched) > 0:
		return matched, ""
	case ref.Name != "":
		return nil, fmt.Sprintf("waiting for Bundle %s, which is not deployed to this cluster", ref.Name)
	default:
		return nil, fmt.Sprintf("waiting for Bundles with labels %s: none is deployed to this cluster", selector)
	}
}

// bundleOf returns the name of the Bundle of a deployment.
func bundleOf(deployment *fleet.BundleDeployment) string {
	if name := deployment.Labels[fleet.LabelBundleName]; name != "" {
		return name
	}
	return deployment.Name
}
