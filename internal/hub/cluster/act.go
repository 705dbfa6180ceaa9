package cluster

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/membership"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// claim puts the finalizer on a Cluster that an admin made.
func (c *Controller) claim(ctx context.Context, cluster *fleet.Cluster) error {
	if !controllerutil.ContainsFinalizer(cluster, fleet.FinalizerCluster) {
		before := cluster.DeepCopy()
		controllerutil.AddFinalizer(cluster, fleet.FinalizerCluster)
		if err := c.Client.Patch(ctx, cluster, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), kube.FieldOwner); err != nil {
			return fmt.Errorf("adding the finalizer: %w", err)
		}
	}
	return nil
}

// observe gathers, and writes nothing. The judge is told whom to judge before it is asked.
func (c *Controller) observe(ctx context.Context, cluster *fleet.Cluster) (observed, error) {
	member := membership.OfCluster(cluster)
	o := observed{
		before: cluster.Status, memberNamespace: member.Namespace, managed: cluster.Spec.KubeConfigSecret != "", hub: c.Hub(cluster),
	}
	o.leavePolicy, o.policyProblem = membership.LeavePolicy(cluster, clusterv1beta1.LeaveOrphan)
	state, namespace, err := member.ObserveNamespace(ctx, c.Client)
	if cluster.DeletionTimestamp != nil {
		o.deleted = cluster.DeletionTimestamp.Time
		state, namespace, err = member.ObserveNamespace(ctx, c.Live) // the cache may not know it yet
	}
	if err != nil {
		return observed{}, err
	}
	if o.namespace = state; namespace != nil {
		o.namespaceUID = namespace.UID
	}
	if err := c.rollUp(ctx, &o, cluster.Namespace); err != nil {
		return observed{}, err
	}
	if o.identity, err = c.identity(ctx, member); err != nil {
		return observed{}, err
	}
	if o.identity == "" {
		since, _ := c.missing.LoadOrStore(member.Namespace, c.Clock.Now())
		o.missing = since.(time.Time)
		return o, nil
	}
	c.missing.Delete(member.Namespace)
	var report clusterv1beta1.InternalMemberCluster
	err = c.Client.Get(ctx, types.NamespacedName{Namespace: member.Namespace, Name: member.Name}, &report)
	if client.IgnoreNotFound(err) != nil {
		return observed{}, fmt.Errorf("reading InternalMemberCluster %s/%s: %w", member.Namespace, member.Name, err)
	}
	period := c.Config.Current().AgentCheckinInterval
	if err == nil {
		o.report, period = &report, report.HeartbeatPeriod()
	}
	if !cluster.Status.Agent.LastSeen.IsZero() || o.identity == membership.Native {
		c.Judge.Track(member.Namespace, period, o.recordedLost())
	}
	o.liveness, o.lastBeat = c.Judge.State(member.Namespace)
	o.clockSkew = c.Judge.ClockSkew(member.Namespace)
	return o, nil
}

// prepare makes the member namespace or heals what is in it, and notes what has become of the namespace.
func (c *Controller) prepare(ctx context.Context, cluster *fleet.Cluster, o *observed) (err error) {
	member := membership.OfCluster(cluster)
	switch {
	case o.namespace == membership.NamespaceAbsent:
		o.namespace, err = member.CreateNamespace(ctx, c.Client, c.Live)
	case o.namespace == membership.NamespaceTerminating:
		err = member.ReleaseWorks(ctx, c.Client, c.Live) // which the agent does not do then
	case o.namespace == membership.NamespaceOurs && o.identity != "":
		err = c.heal(ctx, membership.Identity{Member: member, Kind: o.identity}, o, o.asks(c.Heartbeat(), o.hub))
	}
	if err == nil && o.namespace == membership.NamespaceOurs && o.report != nil {
		o.turn, err = c.adjust(ctx, *o)
	}
	return err
}

// identity returns the kind of agent that the member's account was issued to, or "" if there is no account.
func (c *Controller) identity(ctx context.Context, member membership.Member) (membership.AgentKind, error) {
	account := kube.Metadata(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
	err := c.Client.Get(ctx, types.NamespacedName{Namespace: member.Namespace, Name: naming.MemberServiceAccount}, account)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	return membership.KindOf(account), err
}

func (c *Controller) namespaceMetadata(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	namespace := kube.Metadata(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return namespace, c.Client.Get(ctx, types.NamespacedName{Name: name}, namespace)
}

// heal makes anew what was deleted of a member's rights, report or Lease. The cache is asked first, and only what it does not know
// is looked up, because in the moment after a grant the cache knows nothing yet.
func (c *Controller) heal(ctx context.Context, identity membership.Identity, o *observed, asked clusterv1beta1.InternalMemberClusterSpec) error {
	objects := identity.Objects(asked)
	if o.bundles.DesiredReady > 0 {
		objects = append(objects, identity.ContentBinding(o.namespaceUID))
	}
	missing, err := kube.Missing(ctx, c.Client, c.cachedForm, objects...)
	if err != nil || len(missing) == 0 {
		return err
	}
	if missing, err = kube.Missing(ctx, c.Live, kube.MetadataOf(c.Client.Scheme()), missing...); err != nil {
		return err
	}
	return kube.Ensure(ctx, c.Client, missing...)
}

// asks is what the hub asks of the agent of a Cluster that stays. What becomes of what was delivered when it leaves the agent is told only
// if that is not to stay: it may leave by itself, to register elsewhere.
func (o observed) asks(period time.Duration, hub *clusterv1beta1.HubAddress) clusterv1beta1.InternalMemberClusterSpec {
	asked := membership.Join(period, hub)
	if o.leavePolicy == clusterv1beta1.LeaveDelete {
		asked.LeavePolicy = clusterv1beta1.LeaveDelete
	}
	return asked
}

// adjust keeps what the hub asks of the agent right: that it joins, with which period it beats, which follows the size of the fleet,
// where it reaches the hub, and what becomes of what was delivered when it leaves. A member is looked at every five minutes at least, so a growing fleet slows down by and by. It returns how
// long the member's turn to move is away.
func (c *Controller) adjust(ctx context.Context, o observed) (turn time.Duration, err error) {
	reach := o.reach()
	report, hub := reach.Report, reach.Desired
	if !reach.Asked() {
		if turn = c.Turns.Await(report.Namespace, c.Clock.Now()); turn > 0 {
			hub = report.Spec.Hub
		}
	}
	asked, wanted := report.HeartbeatPeriod(), c.Heartbeat()
	fits := (asked-wanted).Abs() <= wanted/periodTolerance && report.Spec.LeavePolicy == o.asks(0, nil).LeavePolicy
	if report.Spec.State == clusterv1beta1.ClusterStateJoin && fits && (reach.Asked() || turn > 0) {
		return turn, nil
	}
	return turn, membership.Ask(ctx, c.Client, report, o.asks(wanted, hub))
}

// periodTolerance is the part of a period by which a member's may be off before it is worth a write.
const periodTolerance = 4

// cachedForm is how the cache holds an object: reports and Leases whole, of everything else the metadata.
func (c *Controller) cachedForm(object client.Object) client.Object {
	switch object.(type) {
	case *clusterv1beta1.InternalMemberCluster, *coordinationv1.Lease:
		return kube.Whole(object)
	}
	return kube.MetadataOf(c.Client.Scheme())(object)
}

func (c *Controller) report(ctx context.Context, cluster *fleet.Cluster, o observed, leaving membership.Departure) error {
	after := cluster.DeepCopy()
	after.Status = describe(o, leaving, c.Clock.Now())
	if err := kube.PatchStatus(ctx, c.Client, cluster, after); apierrors.IsConflict(err) {
		return nil // somebody else wrote; that wakes this Cluster again
	} else if err != nil {
		return err
	}
	c.written.Store(after)
	c.announce(ctx, after, reasonOf(o.before), reasonOf(after.Status))
	c.announcePolicy(after, kube.FindCondition(o.before.Conditions, fleet.ConditionSupported))
	c.announcePruned(after, kube.FindCondition(o.before.Conditions, clusterv1beta1.ConditionPruned))
	c.announceMove(ctx, after, kube.FindCondition(o.before.Conditions, fleet.ConditionHubConfigured))
	return nil
}

// announce tells of a transition, after it was written.
func (c *Controller) announce(ctx context.Context, cluster *fleet.Cluster, from, to string) {
	if from == to {
		return
	}
	ready := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionReady)
	ctrl.LoggerFrom(ctx).Info("Cluster changed state", "from", from, "to", to, "message", ready.Message)
	switch {
	case to == ReasonAgentLost && c.Judge.Mass(): // told once, by the judge
	case to == ReasonAgentLost || to == ReasonIdentityMissing || to == reasonNamespaceTaken:
		c.Recorder.Eventf(cluster, nil, corev1.EventTypeWarning, to, "Judge", "%s", ready.Message)
	case to == reasonAgentLeft:
		c.Recorder.Eventf(cluster, nil, corev1.EventTypeNormal, to, "Judge", "%s", ready.Message)
	case to == reasonLeaving:
		c.Recorder.Eventf(cluster, nil, corev1.EventTypeNormal, to, "Leave", "%s", ready.Message)
	case from == ReasonAgentLost:
		c.Recorder.Eventf(cluster, nil, corev1.EventTypeNormal, "AgentOnline", "Judge", "the agent is back")
	}
}

// announcePolicy tells that nobody understands what is to become of what is on the Cluster when it leaves.
func (c *Controller) announcePolicy(cluster *fleet.Cluster, before *fleet.Condition) {
	if after := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionSupported); after != nil && before == nil {
		c.Recorder.Eventf(cluster, nil, corev1.EventTypeWarning, after.Reason, "Judge", "%s", after.Message)
	}
}

// announcePruned tells of a release that should be gone and is not removed.
func (c *Controller) announcePruned(cluster *fleet.Cluster, before *fleet.Condition) {
	after := kube.FindCondition(cluster.Status.Conditions, clusterv1beta1.ConditionPruned)
	if after != nil && (before == nil || before.Reason != after.Reason) {
		c.Recorder.Eventf(cluster, nil, corev1.EventTypeWarning, after.Reason, "Prune", "%s", after.Message)
	}
}

// announceMove tells of a move to another address of the hub, and of one that failed.
func (c *Controller) announceMove(ctx context.Context, cluster *fleet.Cluster, before *fleet.Condition) {
	after := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionHubConfigured)
	if before == nil || after == nil || before.Reason == after.Reason {
		return
	}
	ctrl.LoggerFrom(ctx).Info("Cluster moves to another address of the hub", "from", before.Reason, "to", after.Reason, "message", after.Message)
	if kind := membership.EventOfMove(after.Reason); kind != "" {
		c.Recorder.Eventf(cluster, nil, kind, after.Reason, "Move", "%s", after.Message)
	}
}

func reasonOf(status fleet.ClusterStatus) string {
	if ready := kube.FindCondition(status.Conditions, fleet.ConditionReady); ready != nil {
		return ready.Reason
	}
	return ""
}
