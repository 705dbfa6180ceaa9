// Package lifecycle is what the controllers of both kinds of record, Cluster and MemberCluster, do in the same way: observe a member, prepare its
// namespace, move it to another address of the hub, and let it leave.
//
// Record writes the finalizer of a record and, through package membership, what is in the member namespace; the status of a record is written by
// its own controller. Its invariant: a record goes only after the access of its agent has ended.
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
	"github.com/muster-fleet/muster/internal/hub/members/audit"
	"github.com/muster-fleet/muster/internal/hub/members/liveness"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
)

// Controller is embedded by the controllers of records.
type Controller struct {
	controller.Deps
	moves       *MoveLimiter
	finalizer   string
	leavePolicy clusterv1beta1.LeavePolicy
	expected    kube.Expectations
	// Audit writes who was let in and who was revoked.
	Audit *audit.Writer
}

// New returns what the controller of one kind embeds: both kinds share the limiter, and each has a finalizer and a policy for leaving, which an
// annotation overrides.
func New(deps controller.Deps, moves *MoveLimiter, entries *audit.Writer, finalizer string, policy clusterv1beta1.LeavePolicy) *Controller {
	return &Controller{Deps: deps, moves: moves, Audit: entries, finalizer: finalizer, leavePolicy: policy, expected: kube.Expectations{Clock: deps.Clock}}
}

// Reconciliation is one reconcile of a record, with what is particular to its kind.
type Reconciliation interface {
	// Observe completes what was observed of the member, and writes nothing.
	Observe(ctx context.Context, member Observed) error
	// Stay prepares the member namespace and writes the status of a record that was not deleted.
	Stay(ctx context.Context) (ctrl.Result, error)
	// Leaver decides how a deleted record leaves.
	Leaver(timeout time.Duration) Leaver
	// AskToLeave asks the agent to leave, or has it remove first what Leaver.Emptying says, and
	// restores what the agent needs for that.
	AskToLeave(ctx context.Context) error
	// Report writes the status, and how far a deleted record is with leaving.
	Report(ctx context.Context, departure Departure) error
	// Kept returns the record with a condition that says why it stays.
	Kept(reason, message string) client.Object
	// Access is the object that gives the agent its access.
	Access() client.Object
	// Forget drops what the controller remembers of a member namespace that the member leaves.
	Forget(namespace string)
}

// ReconcileRecord observes a record, which then stays, with the finalizer and the given labels, or leaves if it was deleted.
func (c *Controller) ReconcileRecord(ctx context.Context, record client.Object, labels map[string]string, r Reconciliation) (ctrl.Result, error) {
	deleted := record.GetDeletionTimestamp() != nil
	lag := c.expected.Await(client.ObjectKeyFromObject(record), record) // an event wakes the record earlier
	if lag > 0 || deleted && !controllerutil.ContainsFinalizer(record, c.finalizer) {
		return ctrl.Result{RequeueAfter: lag}, nil
	}
	if !deleted {
		if err := c.addFinalizer(ctx, record, labels); err != nil {
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
	o.AccessLeft = left
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

// Observed is what decides on the status and the next step of a record, whatever its kind.
type Observed struct {
	membernamespace.Member
	// Revoked: the access of the member is revoked, and nothing is prepared for it.
	Revoked bool
	// AccessLeft names what still gives access to a member that is revoked; "" if nothing does.
	AccessLeft string
	// Deleted is when the record was deleted; zero if it was not.
	Deleted time.Time
	// LeavePolicy is what becomes of what is placed on the member when it leaves; PolicyProblem says what is wrong with what the record asks for.
	LeavePolicy   clusterv1beta1.LeavePolicy
	PolicyProblem string
	// NamespaceState says what stands at the name of the member namespace, NamespaceUID which namespace that was when the record was read.
	NamespaceState membernamespace.NamespaceState
	NamespaceUID   types.UID
	// NamespaceTaken says why a namespace of somebody else cannot be used; "" if that is not known.
	NamespaceTaken string
	// Foreign: another record's agent is in that namespace, and nothing there says anything of this member.
	Foreign bool
	// Report of the member; nil if there is none.
	Report   *clusterv1beta1.InternalMemberCluster
	Liveness liveness.Observation
	// RecordedLost: the status of the record says that the agent is lost. RecordedBeat is the newest heartbeat that the status shows.
	RecordedLost bool
	RecordedBeat time.Time
	// Refresh is how old RecordedBeat may get while the member is online.
	Refresh time.Duration
	// Hub is where the agent should reach the hub; WaitToMove is how long it has to wait until it may move there.
	Hub        *clusterv1beta1.HubAddress
	WaitToMove time.Duration
}

// key of the record, as text.
func (o Observed) key() string {
	return types.NamespacedName{Namespace: o.Workspace, Name: o.Name}.String()
}

// RevokedResult is after what a revoked member that stays is reconciled again: if something is left of its access.
func (o Observed) RevokedResult() ctrl.Result {
	if o.AccessLeft == "" {
		return ctrl.Result{}
	}
	return ctrl.Result{RequeueAfter: revocationRetry}
}

// Lost returns whether the agent is silent, or was when this process started.
func (o Observed) Lost() bool {
	return o.Liveness.State == liveness.Lost || o.Liveness.State == liveness.Unknown && o.RecordedLost
}

// Seen returns whether an agent has ever sent a heartbeat.
func (o Observed) Seen() bool { return !o.LastSeen().IsZero() }

// LastSeen is the newest heartbeat that the hub knows of.
func (o Observed) LastSeen() time.Time {
	if o.RecordedBeat.After(o.Liveness.LastBeat) {
		return o.RecordedBeat
	}
	return o.Liveness.LastBeat
}

// NamespaceProblem is why the member namespace cannot be used, or two empty texts.
func (o Observed) NamespaceProblem() (reason, message string) {
	switch o.NamespaceState {
	case membernamespace.NamespaceTaken:
		if o.NamespaceTaken != "" {
			return membership.ReasonNamespaceTaken, o.NamespaceTaken
		}
		return membership.ReasonNamespaceTaken, o.Taken(nil)
	case membernamespace.NamespaceTerminating:
		return membership.ReasonNamespaceTerminating, fmt.Sprintf("namespace %s is being deleted; it is made anew when it is gone", o.Namespace)
	case membernamespace.NamespaceAbsent, membernamespace.NamespaceOurs, membernamespace.NamespaceInherited:
	}
	return "", ""
}

// Address is how the agent reaches the hub, and how it should.
func (o Observed) Address() Address { return Address{Desired: o.Hub, Report: o.Report} }

// observe reads what both kinds of record have, but for the heartbeats, and writes nothing.
func (c *Controller) observe(ctx context.Context, record client.Object) (Observed, error) {
	o := Observed{Member: membernamespace.Of(record), Revoked: membership.Revoked(record), Refresh: spread(c.Liveness.Refresh(), record.GetUID())}
	o.LeavePolicy, o.PolicyProblem = leavePolicy(record, c.leavePolicy)
	c.Liveness.SetRecord(o.Namespace, record.GetUID())
	state, namespace, err := o.ObserveNamespace(ctx, c.Client)
	if deleted := record.GetDeletionTimestamp(); err == nil && deleted != nil {
		o.Deleted = deleted.Time
		if state == membernamespace.NamespaceAbsent { // the cache may not have it yet, and never has one that only KubeFleet's hub has labelled
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
	o.Report, err = o.ReadReport(ctx, c.Client)
	return o, err
}

// PrepareNamespace creates the member namespace. A namespace that somebody else deletes loses the finalizers in it, because no agent removes them
// while its record stays.
func (c *Controller) PrepareNamespace(ctx context.Context, o *Observed) (err error) {
	switch o.NamespaceState {
	case membernamespace.NamespaceAbsent:
		o.NamespaceState, err = o.CreateNamespace(ctx, c.Client, c.Live)
	case membernamespace.NamespaceTerminating:
		err = o.Release(ctx, c.Client, c.Live)
	case membernamespace.NamespaceOurs, membernamespace.NamespaceInherited, membernamespace.NamespaceTaken:
	}
	return err
}

// Restore creates those of a member's objects that are missing. What the cache lacks is looked up in the API server, because the cache does not show
// yet what a registration has just created.
func (c *Controller) Restore(ctx context.Context, objects ...client.Object) error {
	metadata := kube.MetadataOf(c.Client.Scheme())
	cached := func(object client.Object) client.Object {
		switch object.(type) {
		case *clusterv1beta1.InternalMemberCluster, *coordinationv1.Lease: // of everything else the cache holds only metadata
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

// addFinalizer adds the finalizer and the labels to a record that lacks them.
func (c *Controller) addFinalizer(ctx context.Context, record client.Object, labels map[string]string) error {
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
		return nil
	}
	if err := kube.Patch(ctx, c.Client, before, record); err != nil {
		return fmt.Errorf("adding the finalizer to %s: %w", kube.Describe(c.Client.Scheme(), record), err)
	}
	return nil
}

// WriteStatus writes what differs in the status of a record.
func (c *Controller) WriteStatus(ctx context.Context, before, after client.Object) error {
	if err := kube.PatchStatus(ctx, c.Client, before, after); err != nil {
		return err
	}
	if after.GetResourceVersion() != before.GetResourceVersion() {
		c.expected.Expect(client.ObjectKeyFromObject(after), after)
	}
	return nil
}

// OnSettings reconciles every record of a list after a change of the settings, one after the other, because each may have to move to another address of
// the hub.
func (c *Controller) OnSettings(list client.ObjectList) handler.EventHandler {
	all := controller.All(c.Client, list)
	return handler.Funcs{GenericFunc: func(ctx context.Context, e event.GenericEvent, q controller.Queue) {
		for i, request := range all(ctx, e.Object) {
			q.AddAfter(request, time.Duration(i)*moveInterval)
		}
	}}
}
