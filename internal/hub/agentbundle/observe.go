package agentbundle

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/liveness"
	"github.com/muster-fleet/muster/internal/hub/membership"
	"github.com/muster-fleet/muster/internal/hub/rollup"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// seen is a member of the table, and what acting on it takes.
type seen struct {
	member
	cluster *fleet.Cluster
	// bundle is as the cache has it; nil if there is none. desired is what it should be; nil if the hub does not manage the agent.
	bundle, desired *fleet.Bundle
	// behind is how long to wait at most until the cache has seen what was written.
	behind time.Duration
}

func (c *Controller) observe(ctx context.Context, cluster *fleet.Cluster) (seen, error) {
	s := seen{cluster: cluster}
	var bundle fleet.Bundle
	err := c.Client.Get(ctx, types.NamespacedName{Namespace: cluster.Namespace, Name: BundleName(cluster.Name)}, &bundle)
	if client.IgnoreNotFound(err) != nil {
		return s, fmt.Errorf("reading Bundle %s/%s: %w", cluster.Namespace, BundleName(cluster.Name), err)
	}
	if err == nil {
		s.bundle = &bundle
		s.behind = c.written.Await(&bundle)
	}
	var report clusterv1beta1.InternalMemberCluster
	if s.unmanaged, err = c.unmanaged(ctx, cluster, &report); err != nil {
		return s, err
	}
	if s.unmanaged == "" && s.bundle != nil && !metav1.IsControlledBy(s.bundle, cluster) {
		s.unmanaged = NameTaken
	}
	if s.unmanaged != "" {
		return s, nil
	}
	if s.desired, s.wanted, err = c.packer.desired(cluster, report.Status.AgentNamespace, c.Config.Current().Agent, c.Clock.Now()); err != nil {
		return s, err
	}
	state, _ := c.Judge.State(membership.OfCluster(cluster).Namespace)
	ready := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionReady)
	s.online, s.lost = state == liveness.Online, state == liveness.Lost
	s.well = ready != nil && ready.Status == corev1.ConditionTrue
	return s, c.observeTold(ctx, &s)
}

// unmanaged says why the hub leaves the agent of a Cluster alone, or "" and what the agent reports.
func (c *Controller) unmanaged(ctx context.Context, cluster *fleet.Cluster, report *clusterv1beta1.InternalMemberCluster) (State, error) {
	if !c.Config.Current().ManageAgent {
		return SwitchedOff, nil
	}
	if _, labelled := cluster.Labels[fleet.LabelNonManagedAgent]; labelled {
		return NotManaged, nil
	}
	namespace := membership.OfCluster(cluster).Namespace
	account := kube.Metadata(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
	err := c.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: naming.MemberServiceAccount}, account)
	switch {
	case apierrors.IsNotFound(err):
		return NotJoined, nil
	case err != nil:
		return "", fmt.Errorf("reading the account of %s: %w", namespace, err)
	case membership.KindOf(account) != membership.Native:
		return ForeignAgent, nil
	}
	err = c.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: cluster.Name}, report)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading the report of %s: %w", namespace, err)
	}
	switch {
	case cluster.Status.Agent.LastSeen.IsZero() || report.Status.AgentVersion == "": // as without a report
		return NotJoined, nil
	case !slices.Contains(report.Status.Features, clusterv1beta1.FeatureManagedAgent) || len(validation.IsDNS1123Label(report.Status.AgentNamespace)) > 0:
		return CannotBeManaged, nil
	case cluster.Spec.Paused:
		return Paused, nil
	}
	return "", nil
}

// observeTold finds out what the agent was told, and what it made of that.
func (c *Controller) observeTold(ctx context.Context, s *seen) error {
	if s.bundle == nil || s.bundle.DeletionTimestamp != nil {
		return nil
	}
	intact, err := c.intact(ctx, s.bundle)
	if err != nil || !intact {
		return err
	}
	label := s.bundle.Labels[fleet.LabelAgent]
	s.told = parseVersion(label)
	if s.toldAt, err = time.Parse(time.RFC3339, s.bundle.Annotations[annotationToldAt]); err != nil {
		s.told = version{}
		return nil //nolint:nilerr // changed by hand: it is told again
	}
	var deployment fleet.BundleDeployment
	err = c.Client.Get(ctx, types.NamespacedName{Namespace: s.cluster.Status.Namespace, Name: s.bundle.Name}, &deployment, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) || err == nil && deployment.Labels[fleet.LabelAgent] != label {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading BundleDeployment %s/%s: %w", s.cluster.Status.Namespace, s.bundle.Name, err)
	}
	switch state := rollup.StateOf(&deployment); state {
	case fleet.StateReady, fleet.StateModified:
		s.back = true
	case fleet.StateErrApplied:
		s.failure = rollup.Message(&deployment)
	}
	return nil
}

// intact says whether a Bundle holds what its label says. Its resources are not in the cache and read once per change.
func (c *Controller) intact(ctx context.Context, bundle *fleet.Bundle) (bool, error) {
	is := held{bundle.Generation, bundle.Labels[fleet.LabelAgent]}
	if known, ok := c.whole.Load(bundle.UID); ok && known == is {
		return true, nil
	}
	var live fleet.Bundle
	if err := c.Live.Get(ctx, client.ObjectKeyFromObject(bundle), &live); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	holds, err := versionOf(&live)
	if err != nil || holds.String() != live.Labels[fleet.LabelAgent] || live.UID != bundle.UID {
		return false, err
	}
	c.whole.Store(live.UID, held{live.Generation, live.Labels[fleet.LabelAgent]})
	return live.Generation == bundle.Generation, nil
}

// held is a Bundle as it was found, or written, to hold what its label says.
type held struct {
	generation int64
	label      string
}

// Delivered is the digest of the settings that the agent of a Cluster runs with because its Bundle told it, and whether the hub manages it;
// the digest is empty while the agent is not back.
func Delivered(ctx context.Context, reader client.Reader, cluster *fleet.Cluster) (digest string, managed bool, err error) {
	said := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionAgentUpToDate)
	if said == nil {
		return "", false, nil
	}
	switch State(said.Reason) {
	case UpToDate, Updating, WaitingForTurn, RolloutStopped, DidNotComeBack, Offline:
	default:
		return "", false, nil
	}
	var bundle fleet.Bundle
	err = reader.Get(ctx, types.NamespacedName{Namespace: cluster.Namespace, Name: BundleName(cluster.Name)}, &bundle)
	if err != nil || State(said.Reason) != UpToDate {
		return "", err == nil, client.IgnoreNotFound(err)
	}
	return bundle.Annotations[annotationSettings], true, nil
}
