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
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/bundles/rollup"
	"github.com/muster-fleet/muster/internal/hub/members/liveness"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// observed is an agent, and what acting on it takes.
type observed struct {
	agent
	cluster *fleet.Cluster
	// identified is when the agent got its identity.
	identified time.Time
	// bundle is as the cache has it; nil if there is none. desiredBundle is what it should be; nil if
	// the hub does not manage the agent.
	bundle, desiredBundle *fleet.Bundle
	// ranchers reports that the hub of Rancher Fleet, in whose place this hub is, made the
	// Bundle for its own agent.
	ranchers bool
}

// rancherAgents is the set in which the hub of Rancher Fleet applies the Bundles of the
// agents of a workspace.
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
	return o, c.observeUpdate(ctx, &o)
}

// unmanaged says why the hub leaves the agent of a Cluster alone, or "" and what the agent reports.
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
	case cluster.Status.Agent.LastSeen.IsZero() || report.Status.AgentVersion == "": // as without a report
		return NotJoined, nil
	case !slices.Contains(report.Status.Features, clusterv1beta1.FeatureManagedAgent) ||
		len(validation.IsDNS1123Label(report.Status.AgentNamespace)) > 0:
		return CannotBeManaged, nil
	case cluster.Spec.Paused:
		return Paused, nil
	}
	return "", nil
}

// observeUpdate finds out which version the agent was sent, and what it reports of that. A Bundle
// that does not hold what its label says was changed by somebody else, and is written again.
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
	switch rollup.StateOf(deployment) {
	case fleet.StateReady, fleet.StateModified:
		o.confirmed = true
	case fleet.StateErrApplied:
		o.failure = rollup.Message(deployment)
	case fleet.StateWaitApplied, fleet.StateOutOfSync, fleet.StatePending, fleet.StateNotReady: // not yet
	}
	return nil
}

// deployment returns the BundleDeployment of an agent, an empty one if there is none.
func (c *Controller) deployment(ctx context.Context, namespace, name string) (*fleet.BundleDeployment, error) {
	var d fleet.BundleDeployment
	err := c.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &d, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading BundleDeployment %s/%s: %w", namespace, name, err)
	}
	return &d, nil
}

// Wrote says whether a Bundle that is labelled as that of an agent is what the hub wrote. Whoever
// may write Bundles of the workspace can label one, make it the Cluster's, and change the hub's.
// But the label is the digest of what the Bundle holds, and no author of Bundles can write it to
// the BundleDeployment in the member namespace, or make it the desired version of the agent.
func (c *Controller) Wrote(ctx context.Context, bundle *fleet.Bundle) (bool, error) {
	label := bundle.Labels[fleet.LabelAgent]
	owner := metav1.GetControllerOf(bundle)
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

// Delivered is the digest of the settings that the agent of a Cluster has confirmed, and whether
// the hub manages the agent; the digest is empty while an update is desired or in flight.
func Delivered(ctx context.Context, reader client.Reader, cluster *fleet.Cluster) (digest string, managed bool, err error) {
	said := State(kube.ReasonOf(cluster.Status.Conditions, fleet.ConditionAgentUpToDate))
	switch said {
	case "", UpToDate, Updating, WaitingForTurn, RolloutStopped, DidNotComeBack, Offline:
	default:
		return "", false, nil
	}
	var bundle fleet.Bundle
	err = reader.Get(ctx, types.NamespacedName{Namespace: cluster.Namespace, Name: naming.AgentBundle(cluster.Name)}, &bundle)
	if err == nil && !metav1.IsControlledBy(&bundle, cluster) {
		return "", false, nil
	}
	if err != nil || said != UpToDate {
		return "", err == nil, client.IgnoreNotFound(err)
	}
	return bundle.Annotations[annotationSettings], true, nil
}
