package cluster

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/history"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/joining/admission"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
)

// remember adds the changes of the status to the history in it, and returns them. The approval of
// the agent's request is in the history only: the request itself has notified the users.
func (r *reconciliation) remember(ctx context.Context, after *fleet.Cluster) ([]history.Change, error) {
	now, recorded := r.Clock.Now(), r.o.before.History
	admitted, err := r.admitted(ctx, now)
	if err != nil {
		return nil, err
	}
	before, state := history.OfCluster(&r.o.before), history.OfCluster(&after.Status)
	r.NameUsers(ctx, after, before, &state)
	changes := history.Changes(before, state, after, recorded, now)
	after.Status.History = history.Append(history.Append(recorded, admitted, now), changes, now)
	return changes, r.rememberDenials(ctx, after, now)
}

// rememberDenials adds the denied requests for the Cluster to its history. The requests themselves
// have notified the users.
func (r *reconciliation) rememberDenials(ctx context.Context, after *fleet.Cluster, now time.Time) error {
	clientID := membership.ClientID(r.cluster)
	if clientID == "" { // matches no request
		return nil
	}
	var requests fleet.ClusterRegistrationList
	err := r.Client.List(ctx, &requests, client.InNamespace(r.cluster.Namespace),
		client.MatchingFields{membernamespace.IndexClientID: clientID}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing the ClusterRegistrations for Cluster %s: %w", client.ObjectKeyFromObject(r.cluster), err)
	}
	after.Status.History, r.denialDue = history.Denied(after.Status.History, requests.Items, r.cluster, now,
		func(request *fleet.ClusterRegistration) string {
			return r.Audit.Known(ctx, admission.RegistrationApproval, request.Annotations[fleet.AnnotationApprovedBy])
		})
	return nil
}

// onDenial enqueues the Clusters of a denied request when the denial is due in their history.
func (c *Controller) onDenial(ctx context.Context, before, after *fleet.ClusterRegistration, q controller.Queue) {
	if after == nil || after.Status.DeniedAt == nil || before != nil && before.Status.DeniedAt.Equal(after.Status.DeniedAt) {
		return
	}
	var list fleet.ClusterList
	err := c.Client.List(ctx, &list, client.InNamespace(after.Namespace),
		client.MatchingFields{membernamespace.IndexClientID: after.Spec.ClientID}, client.UnsafeDisableDeepCopy)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to find the Clusters of a denied request")
		return
	}
	for i := range list.Items {
		q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])}, history.DenialSettles+time.Second)
	}
}

// awaitDenial shortens the wait of a result until the next denial is due.
func (r *reconciliation) awaitDenial(result ctrl.Result) ctrl.Result {
	if r.denialDue.IsZero() {
		return result
	}
	if wait := max(r.denialDue.Sub(r.Clock.Now()), time.Second); result.RequeueAfter == 0 || wait < result.RequeueAfter {
		result.RequeueAfter = wait
	}
	return result
}

// admitted returns the change about the approval of the agent's request, if the history lacks it.
func (r *reconciliation) admitted(ctx context.Context, now time.Time) ([]history.Change, error) {
	account := r.o.account
	if account.request == "" || account.requestUID == "" || now.Sub(account.created) > history.AdmittedWithin {
		return nil, nil
	}
	var request fleet.ClusterRegistration
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: r.cluster.Namespace, Name: account.request}, &request)
	if apierrors.IsNotFound(err) || err == nil && (request.UID != account.requestUID || request.Status.ClusterName != r.cluster.Name) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return history.Admitted(&request, r.o.before.History, now, func() string {
		return r.Audit.Known(ctx, admission.RegistrationApproval, request.Annotations[fleet.AnnotationApprovedBy])
	}), nil
}
