package cluster

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/history"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/members/lifecycle"
	"github.com/muster-fleet/muster/internal/hub/members/liveness"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/kube"
)

// reconciliation is one reconcile of a Cluster. It implements lifecycle.Reconciliation.
type reconciliation struct {
	*Controller
	cluster *fleet.Cluster
	o       observed
	// denialDue is the time when the next denied request is due in the history; zero if none is.
	denialDue time.Time
}

// Observe registers the member with the tracker before it reads the tracker's observation.
func (r *reconciliation) Observe(ctx context.Context, member lifecycle.Observed) (err error) {
	status := &r.cluster.Status
	r.o = observed{
		Observed: member, before: *status, managed: r.cluster.Spec.KubeConfigSecret != "", labels: membernamespace.ReadLabelRecord(r.cluster),
		recorded: membership.ClusterStatus(status, nil).Agent,
		period:   time.Duration(ptr.Deref(r.cluster.Spec.HeartbeatPeriodSeconds, 0)) * time.Second,
	}
	o := &r.o
	o.Hub, o.RecordedLost, o.RecordedBeat = r.hub(r.cluster), o.recorded == membership.AgentLost, status.Agent.LastSeen.Time
	r.KeepAddress(&o.Observed)
	if err := r.rollUp(ctx, o); err != nil {
		return err
	}
	if err := r.observeWorkspace(ctx); err != nil {
		return err
	}
	if !o.Foreign {
		err = r.observeAgent(ctx)
		r.AddTokens(ctx, &o.Observed, r.cluster.Annotations[fleet.AnnotationAgentKey])
	}
	o.moment = r.momentLeft()
	o.sumUp(r.Clock.Now())
	return err
}

// momentLeft returns the rest of the wait of a status without a heartbeat. A Cluster created by a
// user, without an import, or for an agent of Rancher Fleet, has its status at once.
func (r *reconciliation) momentLeft() time.Duration {
	imported := kube.FindCondition(r.o.before.Conditions, fleet.ConditionImported)
	since := r.cluster.CreationTimestamp.Time
	switch {
	case r.o.managed && imported != nil:
		since, _ = time.Parse(time.RFC3339, imported.LastTransitionTime) // zero if it is malformed
	case r.o.before.AgentState != "", !membership.JoinsNatively(r.cluster):
		return 0
	}
	return r.Joins.MomentLeft(since, r.Clock.Now())
}

// observeAgent reads the agent's account, heartbeats and credential.
func (r *reconciliation) observeAgent(ctx context.Context) (err error) {
	o := &r.o
	if o.account, err = r.readAccount(ctx, o.Member); err != nil {
		return err
	}
	if o.agent = acting(o.account, r.cluster.Status.Agent, r.Liveness.Observe(o.Namespace).Source); o.agent == "" {
		if o.missing = r.missing.Of(o.Namespace, r.Clock.Now()); o.Deleted.IsZero() {
			o.Report = nil // else it may be the answer of an agent without access since
		}
		return nil
	}
	r.missing.Forget(o.Namespace)
	period := r.Config.Current().AgentCheckinInterval
	switch {
	case o.Report == nil:
	case o.agent == membership.Legacy:
		o.dropped, o.Report = o.Report, nil
	default:
		if period = max(o.Report.HeartbeatPeriod(), liveness.LeastPeriod); o.account.shared {
			period = max(period, sharedPeriod)
		}
	}
	if !o.RecordedBeat.IsZero() || o.agent == membership.Native {
		r.Liveness.Track(o.Namespace, period, o.RecordedLost)
		r.Liveness.Count(o.Namespace, o.Workspace)
		r.Liveness.Seed(o.Namespace, o.before.HeartbeatDelay)
	}
	o.Liveness = r.Liveness.Observe(o.Namespace)
	r.observeRival(o)
	return r.observeCredential(ctx)
}

// Stay also deletes the Cluster if it has expired.
func (r *reconciliation) Stay(ctx context.Context) (ctrl.Result, error) {
	if r.o.Revoked {
		r.Forget(r.o.Namespace)
		return r.o.RevokedResult(), r.Report(ctx, lifecycle.Departure{})
	}
	if err := r.pinKey(ctx, r.cluster, &r.o); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.prepare(ctx, &r.o); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.inheritApproval(ctx); err != nil {
		return ctrl.Result{}, err
	}
	if left := r.o.unsettled(r.Clock.Now()); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	if err := r.LabelFacts(ctx, r.cluster, r.o.Report); err != nil {
		return ctrl.Result{}, err
	}
	limits, err := r.limits(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	r.o.Cleanup = r.PlanCleanup(r.cluster, r.o.Observed, limits)
	if err := r.Report(ctx, lifecycle.Departure{}); err != nil {
		return ctrl.Result{}, err
	}
	if retry, err := r.CleanUp(ctx, r.cluster, r.o.Observed); retry > 0 || err != nil {
		return ctrl.Result{RequeueAfter: retry}, err
	}
	expires, err := r.expire(ctx, r.cluster, r.o)
	err = errors.Join(err, r.o.credential.Failure) // retried; the status need not wait for it
	if wait := r.o.wait(r.Clock.Now()); err != nil || wait > 0 || expires.IsZero() {
		return ctrl.Result{RequeueAfter: wait}, err
	}
	return kube.At(expires, r.Clock.Now()), nil
}

// prepare creates the member namespace or restores the objects in it, and writes the hub's settings
// for the agent into the report.
func (c *Controller) prepare(ctx context.Context, o *observed) error {
	if o.NamespaceState != membernamespace.NamespaceOurs || o.agent == "" {
		return c.PrepareNamespace(ctx, &o.Observed)
	}
	if err := c.handOver(ctx, o); err != nil {
		return err
	}
	if err := c.restore(ctx, o, o.asks(c.period(o, 0), o.Hub)); err != nil {
		return err
	}
	if err := errors.Join(c.dropReport(ctx, o.dropped), c.endSelfRenewal(ctx, o)); err != nil || o.Report == nil {
		return err
	}
	asked := o.asks(c.period(o, o.Report.HeartbeatPeriod()), c.AddressToAsk(&o.Observed))
	asked.Credential = c.renewer.Issue(ctx, &o.credential)
	return membernamespace.Ask(ctx, c.Client, o.Report, asked)
}

// restore re-creates deleted rights, the report and the Lease of a member, and resets edited
// rights.
func (c *Controller) restore(ctx context.Context, o *observed, request clusterv1beta1.InternalMemberClusterSpec) error {
	objects := o.identity().Objects(request)
	if err := c.Restore(ctx, objects...); err != nil {
		return err
	}
	var err error
	if o.QuarantineLeft, err = c.Confine(ctx, o.Observed, o.identity().Lapsed()...); err != nil {
		return err
	}
	if len(o.deployments) > 0 && !o.Quarantined {
		if err := c.GrantContents(ctx, o.Namespace, o.NamespaceUID); err != nil {
			return err
		}
	}
	return c.restoreEdited(ctx, o.Member, objects)
}

// period returns the heartbeat period of an agent. current is the present one; 0 if there is none.
func (c *Controller) period(o *observed, current time.Duration) time.Duration {
	if o.period > 0 {
		return o.period
	}
	return c.Liveness.Period(current)
}

// asks returns the report's spec for the agent of a staying Cluster. The spec includes the leave
// policy, because the agent may leave by itself to register elsewhere.
func (o observed) asks(period time.Duration, hub *clusterv1beta1.HubAddress) clusterv1beta1.InternalMemberClusterSpec {
	asked := membernamespace.Join(period, hub, o.Term)
	asked.Warning, asked.Quarantined, asked.HealthCheck = o.credential.Warning(), o.Quarantined, o.healthCheck
	if o.LeavePolicy == clusterv1beta1.LeaveDelete {
		asked.LeavePolicy = clusterv1beta1.LeaveDelete
	}
	return asked
}

func (r *reconciliation) Report(ctx context.Context, departure lifecycle.Departure) error {
	after := r.cluster.DeepCopy()
	after.Status = describe(r.o, departure, r.Clock.Now())
	changes, err := r.remember(ctx, after)
	if err != nil {
		return err
	}
	if err := r.WriteStatus(ctx, r.cluster, after); err != nil {
		return err
	}
	r.Notify.Tell(after, string(membership.ClusterStatus(&after.Status, r.o.Report).Agent), changes...)
	r.announce(ctx, after, &r.o.before)
	r.AnnounceVersion(after, reasons.AgentVersionChanged, "the agent", r.o.before.Agent.Version, after.Status.Agent.Version)
	r.AnnounceVersion(after, reasons.KubernetesVersionChanged, "Kubernetes", r.o.before.Agent.KubernetesVersion,
		after.Status.Agent.KubernetesVersion)
	r.AnnounceMove(ctx, after, r.o.Observed, kube.ReasonOf(r.o.before.Conditions, fleet.ConditionHubConfigured))
	return nil
}

// announce logs a new state and emits Events about it and about problems. Call it after the write
// of the status.
func (c *Controller) announce(ctx context.Context, cluster *fleet.Cluster, before *fleet.ClusterStatus) {
	for kind, action := range map[string]string{
		fleet.ConditionSupported: "Assess", fleet.ConditionCloned: "Assess", clusterv1beta1.ConditionPruned: "Prune",
	} {
		problem := kube.FindCondition(cluster.Status.Conditions, kind)
		if problem != nil && problem.Reason != kube.ReasonOf(before.Conditions, kind) {
			c.Recorder.Eventf(cluster, nil, corev1.EventTypeWarning, problem.Reason, action, "%s", problem.Message)
		}
	}
	approved := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionDeliveryApproved)
	if membership.AwaitsApproval(cluster) && approved.Reason != kube.ReasonOf(before.Conditions, fleet.ConditionDeliveryApproved) {
		c.Recorder.Eventf(cluster, nil, corev1.EventTypeNormal, approved.Reason, "Approve", "%s", approved.Message)
	}
	from, ready := kube.ReasonOf(before.Conditions, fleet.ConditionReady), kube.FindCondition(cluster.Status.Conditions, fleet.ConditionReady)
	to := ready.Reason
	if from == to {
		return
	}
	ctrl.LoggerFrom(ctx).Info("Cluster changed state", "from", from, "to", to, "message", ready.Message)
	switch {
	case to == reasons.AgentLost && c.Liveness.ManyLost(): // the tracker has logged it once
	case to == reasons.AgentLost || to == reasons.IdentityMissing || to == reasons.NamespaceTaken ||
		to == reasons.Revoked || to == reasons.Revoking || to == reasons.AgentTooOld:
		c.Recorder.Eventf(cluster, nil, corev1.EventTypeWarning, to, "Assess", "%s", ready.Message)
	case to == reasons.AgentLeft:
		c.Recorder.Eventf(cluster, nil, corev1.EventTypeNormal, to, "Assess", "%s", ready.Message)
	case to == reasons.Leaving:
		c.Recorder.Eventf(cluster, nil, corev1.EventTypeNormal, to, "Leave", "%s", ready.Message)
	case history.OfCluster(before).Agent == membership.AgentLost && cluster.Status.AgentState == string(membership.AgentOnline):
		c.Recorder.Eventf(cluster, nil, corev1.EventTypeNormal, reasons.AgentOnline, "Assess", "the agent sends heartbeats again")
	}
}
