package cluster

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/history"
	"github.com/muster-fleet/muster/internal/hub/joining/admission"
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
	return changes, nil
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
