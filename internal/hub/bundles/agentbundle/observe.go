package agentbundle

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/bundles/rollup"
	"github.com/muster-fleet/muster/internal/hub/members/liveness"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// observed is an agent, and the data needed to act on it.
type observed struct {
	agent
	cluster *fleet.Cluster
	// identified is the creation time of the agent's identity.
	identified time.Time
	// bundle is the cached Bundle; nil if there is none. desiredBundle is the desired one; nil if
	// the hub does not manage the agent.
	bundle, desiredBundle *fleet.Bundle
	// ranchers reports whether Rancher Fleet's hub, replaced by this hub, created the Bundle for
	// its own agent.
	ranchers bool
}

func (o observed) inRollout() agent { return o.agent }

func (o observed) cached() (member, sent client.Object) {
	if o.bundle == nil {
		return o.cluster, nil
	}
	return o.cluster, o.bundle
}

// rancherAgents is the object set of Rancher Fleet's hub for the agent Bundles of a workspace.
const rancherAgents = "fleet-manage-agent"

func (c *Controller) observe(ctx context.Context, cluster *fleet.Cluster) (observed, error) {
	o := observed{cluster: cluster}
	var bundle fleet.Bundle
	err := c.Client.Get(ctx, types.NamespacedName{Namespace: cluster.Namespace, Name: naming.AgentBundle(cluster.Name)}, &bundle)
	if client.IgnoreNotFound(err) != nil {
		return o, fmt.Errorf("reading Bundle %s/%s: %w", cluster.Namespace, naming.AgentBundle(cluster.Name), err)
	}
	if err == nil {
		o.bundle = &bundle
	}
	var report clusterv1beta1.InternalMemberCluster
	account, err := membernamespace.OfCluster(cluster).ReadAccount(ctx, c.Client)
	if err != nil {
		return o, err
	}
	o.identified = account.CreationTimestamp.Time
	if o.unmanaged, err = c.unmanaged(ctx, cluster, account, &report); err != nil {
		return o, err
	}
	o.ranchers = o.bundle != nil && !metav1.IsControlledBy(o.bundle, cluster) &&
		kube.ObjectSetOf(o.bundle) == kube.ObjectSet{ID: rancherAgents, Owner: cluster.Namespace}
	if o.unmanaged == "" && o.bundle != nil && !metav1.IsControlledBy(o.bundle, cluster) && !o.ranchers {
		o.unmanaged = NameTaken
	}
	if o.unmanaged != "" {
		return o, nil
	}
	if o.desiredBundle, o.desired, err = c.chart.bundleFor(cluster, report.Status.AgentNamespace, c.Config.Current().Agent,
		c.Clock.Now()); err != nil {
		return o, err
	}
	state := c.Liveness.Observe(membernamespace.OfCluster(cluster).Namespace).State
	o.online, o.lost = state == liveness.Online, state == liveness.Lost
	o.ready = membership.ClusterStatus(&cluster.Status, nil).Ready
	o.outside = membership.OutsideWindow(&cluster.Status) != ""
	if err := c.observeUpdate(ctx, &o); err != nil {
		return o, err
	}
	if window := cluster.Status.Window; window != nil && window.Since.After(o.sentAt) {
		o.sentAt = window.Since.Time // the agent could not take it earlier
	}
	return o, nil
}

// unmanaged returns the reason why the hub leaves the agent of a Cluster alone. Without a reason
// it returns "" and fills in the agent's report.
func (c *Controller) unmanaged(ctx context.Context, cluster *fleet.Cluster, account *metav1.PartialObjectMetadata,
	report *clusterv1beta1.InternalMemberCluster) (State, error) {
	if !c.Config.Current().ManageAgent {
		return SwitchedOff, nil
	}
	if _, labelled := cluster.Labels[fleet.LabelNonManagedAgent]; labelled {
		return NotManaged, nil
	}
	switch {
	case account.UID == "":
		return NotJoined, nil
	case membership.KindOf(account) != membership.Native:
		return ForeignAgent, nil
	case membership.Shared(account):
		return SharedCredential, nil
	}
	key := types.NamespacedName{Namespace: membernamespace.OfCluster(cluster).Namespace, Name: cluster.Name}
	if err := c.Client.Get(ctx, key, report); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading the report of %s: %w", key.Namespace, err)
	}
	switch {
	case cluster.Status.Agent.LastSeen.IsZero() || report.Status.AgentVersion == "": // the same as no report
		return NotJoined, nil
	case !slices.Contains(report.Status.Features, clusterv1beta1.FeatureManagedAgent) ||
		len(validation.IsDNS1123Label(report.Status.AgentNamespace)) > 0:
		return CannotBeManaged, nil
	case membership.Paused(cluster), membership.Quarantined(cluster):
		return Paused, nil
	}
	return "", nil
}

// observeUpdate determines the version sent to the agent, and the agent's report of it. If a
// Bundle does not match its label, another client changed it, and the hub writes it again.
func (c *Controller) observeUpdate(ctx context.Context, o *observed) error {
	if o.bundle == nil || o.bundle.DeletionTimestamp != nil {
		return nil
	}
	label := o.bundle.Labels[fleet.LabelAgent]
	holds, err := versionOf(o.bundle)
	sentAt, malformed := time.Parse(time.RFC3339, o.bundle.Annotations[annotationSentAt])
	if err != nil || malformed != nil || holds.String() != label {
		return err
	}
	o.sent, o.sentAt, o.before = holds, sentAt, o.bundle.Annotations[annotationBefore]
	deployment, err := c.deployment(ctx, membership.DeliveryNamespace(o.cluster), o.bundle.Name)
	if err != nil || deployment.Labels[fleet.LabelAgent] != label {
		return err
	}
	o.confirmed, o.failure = outcomeOf(deployment)
	return nil
}

// outcomeOf reports whether the agent is ready with the contents of its deployment, or its failure.
func outcomeOf(deployment *fleet.BundleDeployment) (confirmed bool, failure string) {
	switch delivery.EffectiveState(deployment) {
	case fleet.StateReady, fleet.StateModified:
		return true, ""
	case fleet.StateErrApplied:
		return false, rollup.Message(deployment)
	case fleet.StateWaitApplied, fleet.StateOutOfSync, fleet.StatePending, fleet.StateNotReady,
		fleet.StateWaitingForDependency, fleet.StateOutsideWindow, fleet.StatePaused: // not yet
	}
	return false, ""
}

// deployment returns the BundleDeployment of an agent, or an empty one.
func (c *Controller) deployment(ctx context.Context, namespace, name string) (*fleet.BundleDeployment, error) {
	var d fleet.BundleDeployment
	err := c.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &d, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading BundleDeployment %s/%s: %w", namespace, name, err)
	}
	return &d, nil
}

// Wrote reports whether the hub wrote a Bundle with an agent's label. An author of Bundles in the
// workspace can label a Bundle, make it the Cluster's, and change the hub's Bundle. But the label
// is the digest of the Bundle's contents. No author of Bundles can write this digest to the
// BundleDeployment in the member namespace, or make it the agent's desired version.
func (c *Controller) Wrote(ctx context.Context, bundle *fleet.Bundle) (bool, error) {
	label := bundle.Labels[fleet.LabelAgent]
	owner := kube.ControllerOf(bundle, fleet.GroupVersion.WithKind("Cluster").GroupKind())
	if owner == nil || bundle.Name != naming.AgentBundle(owner.Name) {
		return false, nil
	}
	if holds, err := versionOf(bundle); err != nil || holds.String() != label {
		return false, err
	}
	var cluster fleet.Cluster
	if err := c.Client.Get(ctx, types.NamespacedName{Namespace: bundle.Namespace, Name: owner.Name}, &cluster); err != nil ||
		cluster.UID != owner.UID {
		return false, client.IgnoreNotFound(err)
	}
	deployment, err := c.deployment(ctx, membernamespace.OfCluster(&cluster).Namespace, bundle.Name)
	if err != nil || deployment.Labels[fleet.LabelAgent] == label {
		return err == nil, err
	}
	o, err := c.observe(ctx, &cluster)
	return err == nil && o.desired.String() == label, err
}

// Delivered returns the digest of the settings confirmed by the agent of a Cluster, and reports
// whether the hub manages the agent. The digest is empty while an update is desired or in flight.
func Delivered(ctx context.Context, reader client.Reader, cluster *fleet.Cluster) (digest string, managed bool, err error) {
	state := State(kube.ReasonOf(cluster.Status.Conditions, fleet.ConditionAgentUpToDate))
	switch state {
	case "", UpToDate, Updating, WaitingForTurn, RolloutStopped, DidNotComeBack, Offline, OutsideWindow:
	default:
		return "", false, nil
	}
	var bundle fleet.Bundle
	err = reader.Get(ctx, types.NamespacedName{Namespace: cluster.Namespace, Name: naming.AgentBundle(cluster.Name)}, &bundle)
	if err == nil && !metav1.IsControlledBy(&bundle, cluster) {
		return "", false, nil
	}
	if err != nil || state != UpToDate {
		return "", err == nil, client.IgnoreNotFound(err)
	}
	return bundle.Annotations[annotationSettings], true, nil
}
