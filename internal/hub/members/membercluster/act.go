package membercluster

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/facts"
	"github.com/muster-fleet/muster/internal/fleet/history"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/members/lifecycle"
	"github.com/muster-fleet/muster/internal/hub/members/liveness"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/kube"
)

// reconciliation is one reconcile of a MemberCluster. It implements lifecycle.Reconciliation.
type reconciliation struct {
	*Controller
	mc *clusterv1beta1.MemberCluster
	o  observed
}

func (r *reconciliation) Observe(ctx context.Context, member lifecycle.Observed) error {
	mc, o := r.mc, &r.o
	*o = observed{Observed: member, identity: mc.Spec.Identity, systemNamespace: r.SystemNamespace, before: mc.Status,
		leftovers: leftovers(mc), generation: mc.Generation,
		identityBy: mc.Annotations[clusterv1beta1.AnnotationIdentityBy]}
	o.Hub, o.RecordedBeat = r.Config.Current().Hub(), beatOf(mc.Status.AgentStatus)
	r.KeepAddress(&o.Observed)
	o.RecordedLost = membership.MemberClusterStatus(&mc.Status).Reason == reasons.AgentLost
	if o.Report != nil && !metav1.IsControlledBy(o.Report, mc) {
		o.Report = nil
	}
	if err := r.observeIdentity(ctx, mc, o); err != nil {
		return err
	}
	if !o.Revoked && !o.RecordedBeat.IsZero() || o.Report != nil && !beatOf(o.Report.Status.AgentStatus).IsZero() {
		r.Liveness.Track(o.Namespace, max(period(mc), liveness.LeastPeriod), o.RecordedLost)
		r.Liveness.Count(o.Namespace, "")
		r.Liveness.Seed(o.Namespace, o.before.HeartbeatDelay)
	}
	o.Liveness = r.Liveness.Observe(o.Namespace)
	if !o.native() {
		o.Refresh = r.Liveness.RefreshReported()
		o.health = r.healthOf(mc)
	}
	if err := r.observeExports(ctx); err != nil {
		return err
	}
	if err := r.observeWorks(ctx); err != nil {
		return err
	}
	err := r.observeExchange(ctx)
	r.AddTokens(ctx, &o.Observed, o.credential.Key)
	return err
}

// observeIdentity checks whether the identity in the spec may be used.
func (c *Controller) observeIdentity(ctx context.Context, mc *clusterv1beta1.MemberCluster, o *observed) (err error) {
	if identityProblem(o.identity, o.systemNamespace) != "" {
		return nil
	}
	if o.identityHolder, err = c.identityHolder(ctx, mc); err != nil || mc.DeletionTimestamp != nil {
		return err
	}
	key, isAccount := accountOf(o.identity)
	if !isAccount {
		return nil
	}
	account, err := c.readAccount(ctx, key)
	if err != nil {
		return err
	}
	if o.accountMissing = account == nil; !o.accountMissing {
		o.identityUID = account.UID
		o.identityHolder = cmp.Or(o.identityHolder, agentOf(account))
	}
	return nil
}

// period returns the heartbeat period from the spec.
func period(mc *clusterv1beta1.MemberCluster) time.Duration {
	if mc.Spec.HeartbeatPeriodSeconds == 0 {
		return time.Minute
	}
	return time.Duration(mc.Spec.HeartbeatPeriodSeconds) * time.Second
}

func (r *reconciliation) Stay(ctx context.Context) (ctrl.Result, error) {
	o := &r.o
	if o.Revoked {
		r.Forget(o.Namespace)
		return o.RevokedResult(), r.Report(ctx, lifecycle.Departure{})
	}
	err := r.PrepareNamespace(ctx, &o.Observed)
	if err == nil && o.NamespaceState == membernamespace.NamespaceOurs {
		err = r.prepare(ctx)
	}
	if err == nil {
		err = r.LabelFacts(ctx, r.mc, o.Report)
	}
	settings := r.Config.Current()
	o.Cleanup = r.PlanCleanup(r.mc, o.Observed, lifecycle.Limits{LostMembers: settings.LostMembers, Unknown: settings.Unknown})
	unsettled := o.unsettled(r.Clock.Now())
	if err == nil && unsettled == 0 {
		err = r.Report(ctx, lifecycle.Departure{})
	}
	if err = errors.Join(err, o.credential.Failure); err != nil { // the retry of a failed renewal does not delay the status
		return ctrl.Result{}, err
	}
	if unsettled > 0 {
		return ctrl.Result{RequeueAfter: unsettled}, nil
	}
	if retry, err := r.CleanUp(ctx, r.mc, o.Observed); retry > 0 || err != nil {
		return ctrl.Result{RequeueAfter: retry}, err
	}
	return ctrl.Result{RequeueAfter: o.credential.Wait(o.wait(r.Clock.Now()), r.Clock.Now())}, nil
}

// unsettled returns the remaining wait of the status after a first heartbeat. It waits for the
// first report, and for the first credential of an agent with a key.
func (o observed) unsettled(now time.Time) time.Duration {
	reported := o.Report != nil && o.Report.Status.AgentVersion != ""
	if !o.native() || readyToJoinCondition(o).reason != reasons.MemberClusterReadyToJoin ||
		reported && exchangeCondition(o).reason != reasons.Exchanging {
		return 0
	}
	return o.Settling(now)
}

// wait returns the delay until the next reconcile without an event, credentials aside; zero if only
// events change anything.
func (o observed) wait(now time.Time) time.Duration {
	switch {
	case max(o.rightsLag, o.accountLag) > 0:
		return max(o.rightsLag, o.accountLag)
	case o.WaitToMove > 0:
		return o.WaitToMove
	case readyToJoinCondition(o).reason != reasons.MemberClusterReadyToJoin:
		return unwatchedRetry
	case o.Liveness.State == liveness.Online && o.native(): // a heartbeat in a report is an event
		return o.RefreshIn(now)
	}
	return o.Cleanup.Sooner(0, now)
}

// prepare restores the objects in the member namespace, and writes the spec's and the settings'
// instructions into the report.
func (r *reconciliation) prepare(ctx context.Context) error {
	o := &r.o
	err := r.pinKey(ctx)
	if err == nil {
		err = r.endReturn(ctx)
	}
	if err != nil {
		return err
	}
	failure := r.prepareAccount(ctx)
	request := membernamespace.Join(period(r.mc), r.AddressToAsk(&o.Observed), o.Term)
	request.HealthCheck, request.Credential = r.Config.Current().HealthCheck.Thresholds(), r.renewer.Issue(ctx, &o.credential)
	request.Warning, request.Quarantined = o.credential.Warning(), o.Quarantined
	o.credential.Failure = errors.Join(failure, o.credential.Failure)
	if err := r.ask(ctx, o, request); err != nil {
		return err
	}
	if err := r.publish(ctx); err != nil {
		return err
	}
	if o.QuarantineLeft, err = r.Confine(ctx, o.Observed); err != nil {
		return err
	}
	return r.endExchange(ctx)
}

// ask corrects the agent's objects in the member namespace, and writes the spec of the report.
func (c *Controller) ask(ctx context.Context, o *observed, request clusterv1beta1.InternalMemberClusterSpec) error {
	if err := c.correctRights(ctx, o); err != nil {
		return err
	}
	if o.NamespaceNew {
		return kube.Ensure(ctx, c.Client, o.NewReport(request), o.NewLease())
	}
	var err error
	if o.Report == nil {
		err = kube.Ensure(ctx, c.Client, o.NewReport(request))
	} else {
		err = membernamespace.Ask(ctx, c.Client, o.Report, request)
	}
	if err != nil {
		return err
	}
	return c.Restore(ctx, o.NewLease())
}

func (r *reconciliation) Report(ctx context.Context, departure lifecycle.Departure) error {
	after := r.mc.DeepCopy()
	after.Status = describe(r.o, r.mc.Generation, departure, r.Clock.Now())
	changes := r.remember(ctx, after)
	if err := r.WriteStatus(ctx, r.mc, after); err != nil {
		return err
	}
	r.Notify.Tell(after, string(membership.MemberClusterStatus(&after.Status).Agent), changes...)
	before := func(kind string) *metav1.Condition {
		return cmp.Or(meta.FindStatusCondition(r.o.before.Conditions, kind), &metav1.Condition{})
	}
	r.AnnounceMove(ctx, after, r.o.Observed, before(clusterv1beta1.ConditionHubConfigured).Reason)
	r.AnnounceVersion(after, reasons.AgentVersionChanged, "the agent", r.o.before.AgentVersion, after.Status.AgentVersion)
	r.AnnounceVersion(after, reasons.KubernetesVersionChanged, "Kubernetes", r.o.before.Properties[facts.KubernetesVersion].Value,
		after.Status.Properties[facts.KubernetesVersion].Value)
	joins := before(clusterv1beta1.ConditionJoined).Status != metav1.ConditionTrue &&
		meta.IsStatusConditionTrue(after.Status.Conditions, clusterv1beta1.ConditionJoined)
	for _, kind := range announced {
		if to := meta.FindStatusCondition(after.Status.Conditions, kind); to != nil {
			part := joins && slices.Contains(partsOfJoin, kind) && to.Status == metav1.ConditionTrue
			r.announce(ctx, after, before(kind), to, part)
		}
	}
	return nil
}

// remember adds the changes of the status to the history in it.
func (r *reconciliation) remember(ctx context.Context, after *clusterv1beta1.MemberCluster) []history.Change {
	now, known := r.Clock.Now(), r.o.before.History
	before, state := history.OfMemberCluster(&r.o.before), history.OfMemberCluster(&after.Status)
	r.NameUsers(ctx, after, before, &state)
	if before.Agent != state.Agent && state.Agent == membership.AgentOnline && before.Agent != membership.AgentLost {
		state.IdentityBy = r.Audit.Known(ctx, policyAuthor, r.o.identityBy)
	}
	changes := history.Changes(before, state, after, known, now)
	after.Status.History = history.Append(known, changes, now)
	return changes
}

// announced lists the conditions with an Event and a line in the log for each transition.
var announced = []string{
	clusterv1beta1.ConditionReadyToJoin, clusterv1beta1.ConditionJoined, clusterv1beta1.ConditionHealthy,
	clusterv1beta1.ConditionSupported, clusterv1beta1.ConditionPruned, clusterv1beta1.ConditionLeftoversRemoved,
	clusterv1beta1.ConditionCredentialExchanged, clusterv1beta1.ConditionCloned,
}

// partsOfJoin lists conditions without an Event of their own if they become True together with
// Joined: the Event about that is the news.
var partsOfJoin = []string{clusterv1beta1.ConditionHealthy, clusterv1beta1.ConditionCredentialExchanged}

// unannounced lists reasons without news for users.
var unannounced = []string{reasons.Exchanging, reasons.AgentHasNoKey, reasons.SwitchedOff}

// announce logs a transition. It emits an Event about it, unless it is a part of another one.
func (c *Controller) announce(ctx context.Context, mc *clusterv1beta1.MemberCluster, from, to *metav1.Condition, part bool) {
	if from.Reason == to.Reason && from.Status == to.Status || slices.Contains(unannounced, to.Reason) {
		return
	}
	ctrl.LoggerFrom(ctx).Info("MemberCluster changed state", "condition", to.Type, "from", from.Reason, "to", to.Reason, "message", to.Message)
	kind := corev1.EventTypeNormal
	if to.Status == metav1.ConditionFalse && to.Reason != reasons.Leaving && to.Reason != reasons.MemberClusterLeft ||
		to.Type == clusterv1beta1.ConditionCloned {
		kind = corev1.EventTypeWarning
	}
	logged := to.Reason == reasons.AgentLost && c.Liveness.ManyLost() // the tracker has logged it once
	if to.Status != metav1.ConditionUnknown && !logged && !part {
		c.Recorder.Eventf(mc, nil, kind, to.Reason, "Assess", "%s", to.Message)
	}
}
