package member

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/membership"
	"github.com/muster-fleet/muster/internal/kube"
)

// claim puts the finalizer and the label with its own name on a record.
func (c *Controller) claim(ctx context.Context, mc *clusterv1beta1.MemberCluster) error {
	before := mc.DeepCopy()
	changed := controllerutil.AddFinalizer(mc, clusterv1beta1.FinalizerMemberCluster)
	if mc.Labels[clusterv1beta1.LabelMemberName] != mc.Name {
		metav1.SetMetaDataLabel(&mc.ObjectMeta, clusterv1beta1.LabelMemberName, mc.Name)
		changed = true
	}
	if !changed {
		return nil
	}
	if err := c.Client.Patch(ctx, mc, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), kube.FieldOwner); err != nil {
		return fmt.Errorf("claiming MemberCluster %s: %w", mc.Name, err)
	}
	return nil
}

// observe gathers, and writes nothing. The judge is told whom to judge before it is asked.
func (c *Controller) observe(ctx context.Context, mc *clusterv1beta1.MemberCluster) (observed, error) {
	member := membership.OfMemberCluster(mc)
	o := observed{name: mc.Name, memberNamespace: member.Namespace, identity: mc.Spec.Identity, before: mc.Status, hub: c.Config.Current().Hub()}
	o.leavePolicy, o.policyProblem = membership.LeavePolicy(mc, clusterv1beta1.LeaveDelete)
	state, _, err := member.ObserveNamespace(ctx, c.Client)
	if err == nil && state == membership.NamespaceAbsent && mc.DeletionTimestamp != nil {
		state, _, err = member.ObserveNamespace(ctx, c.Live) // the cache may not know it yet
	}
	if err != nil {
		return observed{}, err
	}
	o.namespace = state
	if mc.DeletionTimestamp != nil {
		o.deleted = mc.DeletionTimestamp.Time
	} else if o.identity.Kind == rbacv1.ServiceAccountKind && identityProblem(o.identity) == "" {
		account := kube.Metadata(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
		err := c.Live.Get(ctx, types.NamespacedName{Namespace: o.identity.Namespace, Name: o.identity.Name}, account)
		if o.accountMissing = apierrors.IsNotFound(err); err != nil && !o.accountMissing {
			return observed{}, fmt.Errorf("reading ServiceAccount %s/%s: %w", o.identity.Namespace, o.identity.Name, err)
		}
	}
	var report clusterv1beta1.InternalMemberCluster
	err = c.Client.Get(ctx, types.NamespacedName{Namespace: member.Namespace, Name: member.Name}, &report)
	if client.IgnoreNotFound(err) != nil {
		return observed{}, fmt.Errorf("reading InternalMemberCluster %s/%s: %w", member.Namespace, member.Name, err)
	}
	if err == nil && metav1.IsControlledBy(&report, mc) {
		o.report = &report
	}
	if !o.recordedBeat().IsZero() || !beatOf(report.Status.AgentStatus).IsZero() {
		healthy := meta.FindStatusCondition(mc.Status.Conditions, clusterv1beta1.ConditionHealthy)
		c.Judge.Track(member.Namespace, budgetPeriod(mc), healthy != nil && healthy.Reason == reasonAgentLost)
	}
	o.liveness, o.lastBeat = c.Judge.State(member.Namespace)
	o.clockSkew = c.Judge.ClockSkew(member.Namespace)
	return o, nil
}

// period is what the record asks for.
func period(mc *clusterv1beta1.MemberCluster) time.Duration {
	if mc.Spec.HeartbeatPeriodSeconds == 0 {
		return time.Minute
	}
	return time.Duration(mc.Spec.HeartbeatPeriodSeconds) * time.Second
}

// budgetPeriod is the period that a member is judged by: three of them are at least minSilence.
func budgetPeriod(mc *clusterv1beta1.MemberCluster) time.Duration {
	return max(period(mc), minSilence/3)
}

// prepare makes the member namespace, and notes what has become of it.
func (c *Controller) prepare(ctx context.Context, mc *clusterv1beta1.MemberCluster, o *observed) (err error) {
	switch o.namespace {
	case membership.NamespaceAbsent:
		o.namespace, err = membership.OfMemberCluster(mc).CreateNamespace(ctx, c.Client, c.Live)
	case membership.NamespaceTerminating:
		// Somebody deleted it by mistake. The agent leaves alone what it applied of the Works, so that they would hold the namespace forever.
		err = membership.OfMemberCluster(mc).ReleaseWorks(ctx, c.Client, c.Live)
	case membership.NamespaceOurs, membership.NamespaceTaken:
	}
	if err != nil || o.namespace != membership.NamespaceOurs {
		return err
	}
	if o.report != nil && !o.reach().Asked() {
		o.turn = c.Turns.Await(o.memberNamespace, c.Clock.Now())
	}
	return c.ask(ctx, mc, *o, clusterv1beta1.ClusterStateJoin)
}

// ask brings what is in the member namespace in line with what the agent is asked to do. Only what differs is written.
func (c *Controller) ask(ctx context.Context, mc *clusterv1beta1.MemberCluster, o observed, state clusterv1beta1.ClusterState) error {
	desired := membership.Desired{Member: membership.OfMemberCluster(mc), Native: o.native(), State: state, LeavePolicy: o.leavePolicy, Period: period(mc), Hub: o.hub}
	if o.turn > 0 {
		desired.Hub = o.report.Spec.Hub
	}
	if identityProblem(o.identity) == "" {
		desired.Identity = &o.identity
	}
	role, err := desired.Role()
	if err != nil {
		return err
	}
	binding, report, lease := desired.Binding(), desired.Report(), desired.Lease()
	var differ []client.Object
	var haveRole rbacv1.Role
	if err := c.Live.Get(ctx, client.ObjectKeyFromObject(role), &haveRole); client.IgnoreNotFound(err) != nil {
		return err
	} else if !equality.Semantic.DeepEqual(haveRole.Rules, role.Rules) {
		differ = append(differ, role)
	}
	var haveBinding rbacv1.RoleBinding
	if err := c.Live.Get(ctx, client.ObjectKeyFromObject(binding), &haveBinding); client.IgnoreNotFound(err) != nil {
		return err
	} else if desired.Identity == nil {
		if err := kube.Delete(ctx, c.Client, binding); err != nil {
			return err
		}
	} else if haveBinding.UID == "" || !equality.Semantic.DeepEqual(haveBinding.Subjects, binding.Subjects) {
		differ = append(differ, binding)
	}
	if o.report == nil {
		differ = append(differ, report)
	} else if !equality.Semantic.DeepEqual(o.report.Spec, report.Spec) {
		if err := membership.Ask(ctx, c.Client, o.report, report.Spec); err != nil {
			return err
		}
	}
	if err := c.Client.Get(ctx, client.ObjectKeyFromObject(lease), &coordinationv1.Lease{}); apierrors.IsNotFound(err) {
		missing, err := kube.Missing(ctx, c.Live, kube.MetadataOf(c.Client.Scheme()), lease)
		if err != nil {
			return err
		}
		differ = append(differ, missing...)
	} else if err != nil {
		return err
	}
	return kube.Ensure(ctx, c.Client, differ...)
}

func (c *Controller) report(ctx context.Context, mc *clusterv1beta1.MemberCluster, o observed, leaving membership.Departure) error {
	after := mc.DeepCopy()
	after.Status = describe(o, mc.Generation, leaving, c.Clock.Now())
	if err := kube.PatchStatus(ctx, c.Client, mc, after); err != nil {
		return err
	}
	c.written.Store(after)
	c.announceMove(ctx, after, meta.FindStatusCondition(o.before.Conditions, clusterv1beta1.ConditionHubConfigured))
	for _, kind := range []string{clusterv1beta1.ConditionReadyToJoin, clusterv1beta1.ConditionJoined, clusterv1beta1.ConditionHealthy, clusterv1beta1.ConditionSupported, clusterv1beta1.ConditionPruned} {
		c.announce(ctx, after, meta.FindStatusCondition(o.before.Conditions, kind), meta.FindStatusCondition(after.Status.Conditions, kind))
	}
	return nil
}

// announceMove tells of a move to another address of the hub, and of one that failed.
func (c *Controller) announceMove(ctx context.Context, mc *clusterv1beta1.MemberCluster, before *metav1.Condition) {
	after := meta.FindStatusCondition(mc.Status.Conditions, clusterv1beta1.ConditionHubConfigured)
	if before == nil || after == nil || before.Reason == after.Reason {
		return
	}
	ctrl.LoggerFrom(ctx).Info("MemberCluster moves to another address of the hub", "from", before.Reason, "to", after.Reason, "message", after.Message)
	if kind := membership.EventOfMove(after.Reason); kind != "" {
		c.Recorder.Eventf(mc, nil, kind, after.Reason, "Move", "%s", after.Message)
	}
}

// announce tells of a transition, after it was written.
func (c *Controller) announce(ctx context.Context, mc *clusterv1beta1.MemberCluster, from, to *metav1.Condition) {
	if to == nil || from != nil && from.Reason == to.Reason && from.Status == to.Status {
		return
	}
	before := ""
	if from != nil {
		before = from.Reason
	}
	ctrl.LoggerFrom(ctx).Info("MemberCluster changed state", "condition", to.Type, "from", before, "to", to.Reason, "message", to.Message)
	kind := corev1.EventTypeNormal
	if to.Status == metav1.ConditionFalse && to.Reason != reasonLeaving && to.Reason != reasonLeft {
		kind = corev1.EventTypeWarning
	}
	if told := to.Reason == reasonAgentLost && c.Judge.Mass(); to.Status != metav1.ConditionUnknown && !told {
		c.Recorder.Eventf(mc, nil, kind, to.Reason, "Judge", "%s", to.Message)
	}
}
