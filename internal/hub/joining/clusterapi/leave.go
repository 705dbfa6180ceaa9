package clusterapi

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// leaver reconciles clusters of Cluster API that are being deleted.
//
// Cluster API has no hook for the deletion of a whole cluster without a runtime extension. But its
// controllers leave a paused cluster alone, together with all its objects. So the leaver pauses
// such a cluster until its Cluster has left the fleet, or the time is over. It touches no cluster
// that a user has paused: clusterctl move deletes those, and their machines stay.
type leaver struct{ *Controller }

func (c *Controller) registerLeaver(mgr ctrl.Manager) error {
	ofMember := controller.On(func(_ context.Context, before, after *fleet.Cluster, q controller.Queue) {
		member := after
		if member == nil {
			member = before
		}
		for _, owner := range member.OwnerReferences {
			if kube.IsOwner(owner, schema.GroupKind{Group: group, Kind: "Cluster"}) {
				q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: member.Namespace, Name: owner.Name}})
			}
		}
	})
	return ctrl.NewControllerManagedBy(mgr).Named("clusterapi-leave").
		WatchesRawSource(source.Func(c.followed.startLeaving)).
		Watches(&fleet.Cluster{}, controller.SkipInitial(ofMember)).
		Complete(controller.RetryConflicts(c.Recorder, leaver{c}))
}

// Reconcile takes the next step for a cluster of Cluster API that is being deleted.
func (l leaver) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	o, err := l.observe(ctx, request.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	switch decide(o, l.Clock.Now()) {
	case stepHold:
		return l.hold(ctx, o)
	case stepLeave:
		return l.leave(ctx, o)
	case stepWait:
		return l.awaitDeadline(o), nil
	case stepGo:
		return ctrl.Result{}, l.release(ctx, o, corev1.EventTypeNormal, reasons.MachinesGo,
			"The member has left the fleet, and Cluster API continues with the deletion")
	case stepGiveUp:
		message := fmt.Sprintf("Cluster %s did not leave the fleet in time. Cluster API continues with the deletion since %s",
			o.member.Name, l.Clock.Now().UTC().Format(time.RFC3339))
		if err := l.release(ctx, o, corev1.EventTypeWarning, reasons.LeftLate, message); err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, l.say(ctx, o.member, reasons.LeftLate, message)
	case stepResumed:
		return ctrl.Result{}, l.say(ctx, o.member, reasons.LeftLate,
			fmt.Sprintf("A user has resumed cluster %s of Cluster API before this Cluster has left the fleet", o.theirs.GetName()))
	case stepNone:
	}
	return ctrl.Result{}, nil
}

func (l leaver) observe(ctx context.Context, key types.NamespacedName) (o observed, err error) {
	o.limit = l.Config.Current().ClusterAPI.LeaveFirst
	if l.followed.version().Empty() {
		return o, nil
	}
	theirs, err := l.followed.get(ctx, key)
	if apierrors.IsNotFound(err) {
		return o, nil
	} else if err != nil {
		return o, fmt.Errorf("reading cluster %s of Cluster API: %w", key, err)
	}
	if theirs.GetDeletionTimestamp() == nil {
		return o, nil
	}
	o.theirs = theirs
	err = l.cache.Get(ctx, types.NamespacedName{Name: key.Namespace}, kube.CoreMetadata("Namespace"))
	if client.IgnoreNotFound(err) != nil {
		return o, err
	}
	o.wanted = err == nil
	for _, name := range []string{naming.CleanCluster(key.Name), key.Name} {
		member := &fleet.Cluster{}
		err := l.Client.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: name}, member)
		if client.IgnoreNotFound(err) != nil {
			return o, fmt.Errorf("reading Cluster %s/%s: %w", key.Namespace, name, err)
		}
		if err == nil && registeredBy(member, theirs) {
			o.member = member
			break
		}
	}
	return o, nil
}

// registeredBy reports whether the hub has registered a Cluster for a cluster of Cluster API. The
// UID proves it: a later cluster of the same name has another.
func registeredBy(member *fleet.Cluster, theirs *unstructured.Unstructured) bool {
	elsewhere := member.Spec.KubeConfigSecretNamespace
	return ownedBy(member, theirs) && member.Spec.KubeConfigSecret == theirs.GetName()+secretSuffix &&
		(elsewhere == "" || elsewhere == theirs.GetNamespace())
}

// hold pauses a cluster of Cluster API. The lock protects a user who pauses it at the same time.
func (l leaver) hold(ctx context.Context, o observed) (ctrl.Result, error) {
	until := o.deadline().UTC().Format(time.RFC3339)
	err := l.pause(ctx, o.theirs, true, until)
	switch {
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err): // it lacks the right, or a webhook refuses it
		return ctrl.Result{}, l.refused(ctx, o, "the hub may not pause it: "+err.Error())
	case err != nil:
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	ctrl.LoggerFrom(ctx).Info("Deletion of a cluster of Cluster API waits for its member", "member", o.member.Name)
	l.Recorder.Eventf(o.theirs, nil, corev1.EventTypeNormal, reasons.LeavesFirst, "Leave", "%s", o.waiting())
	return ctrl.Result{}, nil // the event of the write enqueues it
}

// leave deletes a Cluster. Its deliveries and its agent go, unless an annotation of a user keeps
// them.
func (l leaver) leave(ctx context.Context, o observed) (ctrl.Result, error) {
	if err := l.say(ctx, o.member, reasons.LeavesFirst, o.waiting()); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if missing := o.unasked(); len(missing) > 0 {
		if err := kube.Annotate(ctx, l.Client, o.member, missing, kube.FieldOwner); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(fmt.Errorf("preparing Cluster %s/%s to leave: %w", o.member.Namespace, o.member.Name, err))
		}
	}
	if o.member.DeletionTimestamp != nil {
		return l.awaitDeadline(o), nil
	}
	uid := o.member.UID
	err := l.Client.Delete(ctx, o.member, client.Preconditions{UID: &uid})
	switch {
	case apierrors.IsForbidden(err): // a protection, which an event of the Cluster ends
		return l.awaitDeadline(o), l.refused(ctx, o, "the API server refuses to delete the Cluster: "+err.Error())
	case client.IgnoreNotFound(err) != nil:
		return ctrl.Result{}, fmt.Errorf("deleting Cluster %s/%s: %w", o.member.Namespace, o.member.Name, err)
	}
	ctrl.LoggerFrom(ctx).Info("Member leaves before Cluster API deletes its machines", "member", o.member.Name)
	return l.awaitDeadline(o), nil
}

// refused shows why a member does not leave first.
func (l leaver) refused(ctx context.Context, o observed, why string) error {
	message := kube.Clip(fmt.Sprintf("%s. %s", why, o.waiting()), maxRefusal)
	l.Recorder.Eventf(o.theirs, nil, corev1.EventTypeWarning, reasons.LeaveRefused, "Leave", "%s", message)
	return client.IgnoreNotFound(l.say(ctx, o.member, reasons.LeaveRefused, message))
}

// release lets Cluster API continue.
func (l leaver) release(ctx context.Context, o observed, kind, reason, message string) error {
	err := l.pause(ctx, o.theirs, false, nil)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if apierrors.IsForbidden(err) {
		l.Recorder.Eventf(o.theirs, nil, corev1.EventTypeWarning, reasons.LeaveRefused, "Leave",
			"The hub may not resume the cluster that it has paused: %s", o.wayOut())
	}
	if err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("Deletion of a cluster of Cluster API continues", "reason", reason)
	l.Recorder.Eventf(o.theirs, nil, kind, reason, "Leave", "%s", message)
	return nil
}

// pause pauses or resumes a cluster of Cluster API, and marks it or takes the mark off.
func (l leaver) pause(ctx context.Context, theirs *unstructured.Unstructured, paused bool, mark any) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"uid": theirs.GetUID(), "resourceVersion": theirs.GetResourceVersion(),
			"annotations": map[string]any{fleet.AnnotationPausedUntilLeft: mark},
		},
		"spec": map[string]any{"paused": paused},
	})
	if err != nil {
		panic(err) // texts
	}
	if err := l.Client.Patch(ctx, theirs.DeepCopy(), client.RawPatch(types.MergePatchType, patch), kube.FieldOwner); err != nil {
		return fmt.Errorf("writing spec.paused of cluster %s/%s of Cluster API: %w", theirs.GetNamespace(), theirs.GetName(), err)
	}
	return nil
}

// say sets the condition of a member. A repeated refusal is one condition.
func (l leaver) say(ctx context.Context, member *fleet.Cluster, reason, message string) error {
	shown := kube.FindCondition(member.Status.Conditions, fleet.ConditionLeftFirst)
	if shown != nil && (shown.Reason == reason || shown.Reason == reasons.LeaveRefused && reason == reasons.LeavesFirst) {
		return nil
	}
	before := member.DeepCopy()
	member.Status.Conditions = kube.SetCondition(member.Status.Conditions, l.Clock.Now(),
		kube.Condition(fleet.ConditionLeftFirst, false, reason, message))
	if err := kube.PatchStatus(ctx, l.Client, before, member); err != nil {
		return client.IgnoreNotFound(err)
	}
	kind := corev1.EventTypeWarning
	if reason == reasons.LeavesFirst {
		kind = corev1.EventTypeNormal
	}
	l.Recorder.Eventf(member, nil, kind, reason, "Leave", "%s", message)
	return nil
}

// awaitDeadline returns the timer of a cluster that is held. Events of the Cluster come first.
func (l leaver) awaitDeadline(o observed) ctrl.Result {
	return ctrl.Result{RequeueAfter: max(o.deadline().Sub(l.Clock.Now()), time.Second)}
}

// unasked returns the missing annotations of a Cluster that leaves nothing behind. A user's own
// annotations stay.
func (o observed) unasked() map[string]any {
	missing := map[string]any{}
	for key, value := range map[string]string{
		clusterv1beta1.AnnotationLeavePolicy: string(clusterv1beta1.LeaveDelete), clusterv1beta1.AnnotationUninstallAgent: "true",
	} {
		if _, given := o.member.GetAnnotations()[key]; !given {
			missing[key] = value
		}
	}
	return missing
}
