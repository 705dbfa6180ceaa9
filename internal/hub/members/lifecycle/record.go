// Package lifecycle holds the common steps of the controllers of Cluster and MemberCluster. These
// observe a member, prepare its namespace, move it to another address of the hub, and let it leave.
//
// Lifecycle writes the finalizer of a membership object, a label of its workspace, and, through
// package membernamespace, the objects in the member namespace. The controller of each kind writes
// the status. Its invariant: a membership object stays until the access of its agent has ended.
package lifecycle

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/members/audit"
	"github.com/muster-fleet/muster/internal/hub/members/liveness"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
)

// Controller is embedded by the controllers of Cluster and MemberCluster.
type Controller struct {
	controller.Deps
	moves       *MoveLimiter
	finalizer   string
	leavePolicy clusterv1beta1.LeavePolicy
	expected    kube.Expectations
	// Audit writes entries about admissions and revocations.
	Audit *audit.Writer
	// workspaces holds a workspace for each namespace with Clusters.
	workspaces kube.Memory[string, *workspace]
	// quarantines holds the begin of each quarantine with an AuditEntry, by the UID of the membership
	// object.
	quarantines kube.Memory[types.UID, time.Time]
}

// New returns the embedded controller of one kind. Both kinds share the limiter. Each has its own
// finalizer and its own leave policy, and an annotation overrides the policy.
func New(deps controller.Deps, moves *MoveLimiter, entries *audit.Writer, finalizer string, policy clusterv1beta1.LeavePolicy) *Controller {
	return &Controller{
		Deps: deps, moves: moves, Audit: entries, finalizer: finalizer, leavePolicy: policy, expected: kube.Expectations{Clock: deps.Clock},
	}
}

// Reconciliation is one reconcile of a membership object, with the steps particular to its kind.
type Reconciliation interface {
	// Observe completes the observation of the member, and writes nothing.
	Observe(ctx context.Context, member Observed) error
	// Stay prepares the member namespace and writes the status of a membership object that stays.
	Stay(ctx context.Context) (ctrl.Result, error)
	// Leaver returns the inputs to decide how a deleted membership object leaves.
	Leaver(timeout time.Duration) Leaver
	// AskToLeave requests the agent to leave, or to remove first everything named in Leaver.Emptying.
	// It restores the objects the agent needs for this.
	AskToLeave(ctx context.Context) error
	// Report writes the status and the progress of a leaving membership object.
	Report(ctx context.Context, departure Departure) error
	// Kept returns the membership object with a condition about the reason for its stay.
	Kept(reason, message string) client.Object
	// Access returns the object with the agent's access.
	Access() client.Object
	// Forget drops the controller's data about a former member namespace.
	Forget(namespace string)
}

// ReconcileRecord observes a membership object. If it is not deleted, ReconcileRecord adds the
// finalizer and the given labels, and the member stays; else the member leaves.
func (c *Controller) ReconcileRecord(ctx context.Context, record client.Object, labels map[string]string,
	r Reconciliation) (ctrl.Result, error) {
	deleted := record.GetDeletionTimestamp() != nil
	lag := c.expected.Await(client.ObjectKeyFromObject(record), record) // an event enqueues it earlier
	if lag > 0 || deleted && !controllerutil.ContainsFinalizer(record, c.finalizer) {
		return ctrl.Result{RequeueAfter: lag}, nil
	}
	written := false
	if !deleted {
		var err error
		if written, err = c.addFinalizer(ctx, record, labels); err != nil {
			return ctrl.Result{}, err
		}
		if err := c.markWorkspace(ctx, record); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err := membernamespace.Of(record).Mark(ctx, c.Client); err != nil {
		return ctrl.Result{}, err
	}
	left, err := c.Revoke(ctx, record, r)
	if err != nil {
		return ctrl.Result{}, err
	}
	o, err := c.observe(ctx, record)
	o.AccessLeft, o.Proven = left, written
	if err == nil {
		err = r.Observe(ctx, o)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if deleted {
		return c.leave(ctx, record, r)
	}
	return r.Stay(ctx)
}

// Observed holds the inputs, common to both kinds, for the status and the next step of a membership
// object.
type Observed struct {
	membernamespace.Member
	// Revoked: the access of the member is revoked, and the hub prepares nothing for it.
	Revoked bool
	// AccessLeft names the objects with remaining access for a revoked member; "" if there are none.
	AccessLeft string
	// Quarantined: the agent may only send heartbeats and reports. Quarantine is the message about it,
	// and QuarantineLeft names the rights left besides; "" if there are none.
	Quarantined                bool
	Quarantine, QuarantineLeft string
	// Deleted is the time of the membership object's deletion; zero if it is not deleted.
	Deleted time.Time
	// LeavePolicy decides about workloads on a leaving member; PolicyProblem names the fault in the
	// membership object's annotation.
	LeavePolicy   clusterv1beta1.LeavePolicy
	PolicyProblem string
	// Uninstall: the agent removes itself when the member leaves. AgentStays gives the cause if a user
	// requires that and the agent cannot, as the predicate of a sentence about the agent.
	Uninstall  bool
	AgentStays string
	// NamespaceState is the state of the namespace with the member namespace's name; NamespaceUID is
	// its UID at the time of the read.
	NamespaceState membernamespace.NamespaceState
	NamespaceUID   types.UID
	// NamespaceNew: this reconcile has created the member namespace, so nothing is in it.
	NamespaceNew bool
	// NamespaceTaken gives the cause why the hub cannot use a namespace of another owner; "" if
	// unknown.
	NamespaceTaken string
	// Foreign: the namespace holds the agent of another membership object, and nothing there is about
	// this member.
	Foreign bool
	// Report of the member; nil if there is none.
	Report   *clusterv1beta1.InternalMemberCluster
	Liveness liveness.Observation
	// Cleanup is the plan for a member without heartbeats.
	Cleanup Cleanup
	// RecordedLost: the status of the membership object shows the agent as Lost. RecordedBeat is the
	// newest heartbeat in the status.
	RecordedLost bool
	RecordedBeat time.Time
	// Refresh is the maximum age of RecordedBeat while the member is online.
	Refresh time.Duration
	// Hub is the desired address of the hub for the agent; WaitToMove is the time until the agent may
	// move there.
	Hub        *clusterv1beta1.HubAddress
	WaitToMove time.Duration
	// Standby is about the further addresses without a token; see Address.
	Standby string
	// Term is the term of the hub, for the agent.
	Term *clusterv1beta1.HubTerm
}

// key returns the namespace and name of the membership object.
func (o Observed) key() string {
	return types.NamespacedName{Namespace: o.Workspace, Name: o.Name}.String()
}

// RevokedResult returns the result for a revoked member: another reconcile if some of its access is
// left.
func (o Observed) RevokedResult() ctrl.Result {
	if o.AccessLeft == "" {
		return ctrl.Result{}
	}
	return ctrl.Result{RequeueAfter: revocationRetry}
}

// Lost reports whether the agent is Lost, or was when this process started.
func (o Observed) Lost() bool {
	return o.Liveness.State == liveness.Lost || o.Liveness.State == liveness.Unknown && o.RecordedLost
}

// Seen reports whether an agent has ever sent a heartbeat.
func (o Observed) Seen() bool { return !o.LastSeen().IsZero() }

// LastSeen returns the newest heartbeat known to the hub.
func (o Observed) LastSeen() time.Time {
	if o.RecordedBeat.After(o.Liveness.LastBeat) {
		return o.RecordedBeat
	}
	return o.Liveness.LastBeat
}

// Settle bounds the wait of the status after a native agent's first heartbeat. One write then also
// shows the immediate changes after it.
const Settle = 2 * time.Second

// Settling returns the remaining wait of a first heartbeat; zero if the status shows one already.
func (o Observed) Settling(now time.Time) time.Duration {
	if !o.RecordedBeat.IsZero() || o.Liveness.OnlineSince.IsZero() {
		return 0
	}
	return max(0, o.Liveness.OnlineSince.Add(Settle).Sub(now))
}

// NamespaceProblem returns the reason and the message of an unusable member namespace, or two empty
// texts.
func (o Observed) NamespaceProblem() (reason, message string) {
	switch o.NamespaceState {
	case membernamespace.NamespaceAbsent:
		if problem := membernamespace.NameProblem(o.Name, o.Namespace); problem != "" {
			return reasons.InvalidName, problem + "; delete this one"
		}
	case membernamespace.NamespaceTaken:
		if o.NamespaceTaken != "" {
			return reasons.NamespaceTaken, o.NamespaceTaken
		}
		return reasons.NamespaceTaken, o.Taken(nil)
	case membernamespace.NamespaceTerminating:
		return reasons.NamespaceTerminating, fmt.Sprintf("namespace %s is being deleted; the hub creates it again when it is gone", o.Namespace)
	case membernamespace.NamespaceOurs, membernamespace.NamespaceInherited:
	}
	return "", ""
}

// observe reads the data common to both kinds, except heartbeats, and writes nothing.
func (c *Controller) observe(ctx context.Context, record client.Object) (Observed, error) {
	o := Observed{
		Member: membernamespace.Of(record), Revoked: membership.Revoked(record), Refresh: spread(c.Liveness.Refresh(), record.GetUID()),
		Term: c.Identity.Term(),
	}
	o.LeavePolicy, o.PolicyProblem = leavePolicy(record, c.leavePolicy)
	if o.Quarantined = membership.Quarantined(record); o.Quarantined {
		o.Quarantine, o.LeavePolicy = quarantine(record), clusterv1beta1.LeaveOrphan // it may not remove anything
	}
	if removedAsLost(record) {
		o.LeavePolicy = clusterv1beta1.LeaveOrphan
	}
	c.Liveness.SetRecord(o.Namespace, record.GetUID())
	state, namespace, err := o.ObserveNamespace(ctx, c.Client)
	if deleted := record.GetDeletionTimestamp(); err == nil && deleted != nil {
		o.Deleted = deleted.Time
		// the cache may not have it yet, and never holds a namespace labelled only by KubeFleet's hub
		if state == membernamespace.NamespaceAbsent {
			state, namespace, err = o.ObserveNamespace(ctx, c.Live)
		}
		if state == membernamespace.NamespaceInherited {
			state = membernamespace.NamespaceOurs
		}
	}
	if err != nil {
		return Observed{}, err
	}
	o.NamespaceState = state
	if namespace != nil {
		if state == membernamespace.NamespaceTaken {
			o.NamespaceTaken = o.Taken(namespace)
		}
		o.NamespaceUID, o.Foreign = namespace.UID, !o.MadeFor(namespace) && !o.Marked(namespace)
	}
	if o.Foreign {
		return o, nil
	}
	o.Report, err = c.readReport(ctx, o.Member)
	o.Uninstall, o.AgentStays = o.uninstall(record)
	return o, err
}

// PrepareNamespace creates the member namespace. In a terminating namespace it removes the
// finalizers, because no agent does so while the membership object stays.
func (c *Controller) PrepareNamespace(ctx context.Context, o *Observed) (err error) {
	switch o.NamespaceState {
	case membernamespace.NamespaceAbsent:
		if membernamespace.NameProblem(o.Name, o.Namespace) != "" {
			return nil // no retry helps; the status reports it
		}
		o.NamespaceState, o.NamespaceNew, err = o.CreateNamespace(ctx, c.Client, c.Live)
	case membernamespace.NamespaceTerminating:
		err = o.Release(ctx, c.Client, c.Live)
	case membernamespace.NamespaceOurs, membernamespace.NamespaceInherited, membernamespace.NamespaceTaken:
	}
	return err
}

// Restore creates the missing objects of a member. It looks up objects missing from the cache in
// the API server, because the cache may lag behind a registration.
func (c *Controller) Restore(ctx context.Context, objects ...client.Object) error {
	metadata := kube.MetadataOf(c.Client.Scheme())
	cached := func(object client.Object) client.Object {
		switch object.(type) {
		case *clusterv1beta1.InternalMemberCluster, *coordinationv1.Lease: // the cache holds only metadata of all other kinds
			return kube.Whole(object)
		}
		return metadata(object)
	}
	missing, err := kube.Missing(ctx, c.Client, cached, objects...)
	if err == nil {
		missing, err = kube.Missing(ctx, c.Live, metadata, missing...)
	}
	if err != nil {
		return err
	}
	return kube.Ensure(ctx, c.Client, missing...)
}

// addFinalizer adds the finalizer and the labels missing from a membership object. It reports
// whether it wrote them: then the API server has confirmed the object.
func (c *Controller) addFinalizer(ctx context.Context, record client.Object, labels map[string]string) (written bool, err error) {
	before := kube.Whole(record)
	changed := controllerutil.AddFinalizer(record, c.finalizer)
	have := record.GetLabels()
	for key, value := range labels {
		if have[key] == value {
			continue
		}
		if have == nil {
			have = map[string]string{}
		}
		have[key], changed = value, true
	}
	record.SetLabels(have)
	if !changed {
		return false, nil
	}
	if err := kube.Patch(ctx, c.Client, before, record); err != nil {
		return false, fmt.Errorf("adding the finalizer to %s: %w", kube.Describe(c.Client.Scheme(), record), err)
	}
	return true, nil
}

// OnSettings enqueues every membership object of a list after a change of the settings, one after
// another. Each may have to move to another address of the hub.
func (c *Controller) OnSettings(list client.ObjectList) handler.EventHandler {
	all := controller.All(c.Client, list)
	return handler.Funcs{GenericFunc: func(ctx context.Context, e event.GenericEvent, q controller.Queue) {
		for i, request := range all(ctx, e.Object) {
			q.AddAfter(request, time.Duration(i)*moveInterval)
		}
	}}
}
