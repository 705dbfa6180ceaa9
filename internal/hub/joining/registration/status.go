package registration

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/history"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
)

// maxTold bounds the message of a notification about a request.
const maxTold = 512

// report writes the decision to the status of the request.
func (c *Controller) report(ctx context.Context, r *fleet.ClusterRegistration, o observation, d decision, answer []byte) error {
	after := r.DeepCopy()
	after.Status = fleet.ClusterRegistrationStatus{
		ClusterName:      d.cluster,
		Granted:          d.state == fleet.RegistrationGranted,
		FirstSeenVersion: c.tracker.firstSeenAt(r),
		State:            d.state,
		Reason:           d.reason,
		Message:          d.message,
		Answer:           answer,
		DroppedLabels:    o.dropped,
		Conditions:       slices.Clone(r.Status.Conditions),
	}
	if after.Status.Granted {
		after.Status.GrantedAt = cmp.Or(r.Status.GrantedAt, &metav1.Time{Time: c.Clock.Now()})
	}
	after.Status.DeniedAt = deniedAt(r, d, c.Clock.Now())
	if said := o.attribution.condition(); said == nil {
		after.Status.Conditions = kube.RemoveCondition(after.Status.Conditions, fleet.ConditionAttributed)
	} else {
		after.Status.Conditions = kube.SetCondition(after.Status.Conditions, c.Clock.Now(), *said)
	}
	if d.reason == reasons.KeyProved {
		after.Status.ApprovedReason, after.Status.ApprovedGeneration = reasons.KeyProved, r.Generation
	} else if reason, _ := o.approvalNeeded(); reason != "" && o.isApproved(reason) {
		after.Status.ApprovedReason, after.Status.ApprovedGeneration = reason, r.Generation
	} else {
		after.Status.ApprovedReason, after.Status.ApprovedGeneration = r.Status.ApprovedReason, r.Status.ApprovedGeneration
	}
	if err := kube.PatchStatus(ctx, c.Client, r, after); err != nil {
		return err
	}
	if after.ResourceVersion != r.ResourceVersion {
		c.expected.Expect(client.ObjectKeyFromObject(after), after)
	}
	c.tracker.trackRequest(after)
	if r.Status.State == d.state && r.Status.Reason == d.reason {
		return nil
	}
	c.Notify.Tell(after, string(d.state), verdicts(r, after)...)
	ctrl.LoggerFrom(ctx).Info("Registration changed state", "from", r.Status.State, "to", d.state, "reason", d.reason, "cluster", d.cluster)
	switch d.state {
	case fleet.RegistrationDenied, fleet.RegistrationConflict, fleet.RegistrationPending:
		c.Recorder.Eventf(r, nil, corev1.EventTypeWarning, d.reason, "Register", "%s: %s", d.state, d.message)
		if d.reason == reasons.HolderAlive || d.reason == reasons.HolderLost {
			c.Recorder.Eventf(o.match, r, corev1.EventTypeWarning, d.reason, "Register", "ClusterRegistration %s requests to become this "+
				"Cluster: %s",
				r.Name, d.message)
		}
	case fleet.RegistrationWaiting, fleet.RegistrationGranted: // nothing to warn about
	}
	return nil
}

// deniedAt returns the time of the denial of a request, for the history of its Cluster. A granted
// request that ends with the revocation of its member has none.
func deniedAt(r *fleet.ClusterRegistration, d decision, now time.Time) *metav1.Time {
	known := r.Status.DeniedAt
	switch before := r.Status.State; {
	case d.state != fleet.RegistrationDenied, before == fleet.RegistrationGranted, before == fleet.RegistrationDenied && known == nil:
		return nil
	case before == fleet.RegistrationDenied && r.Status.Reason == d.reason:
		return known
	}
	return &metav1.Time{Time: now}
}

// verdicts returns the changes of a request with a pending or past decision of a user.
func verdicts(before, after *fleet.ClusterRegistration) (changes []history.Change) {
	add := func(reason clusterv1beta1.HistoryReason, message string) {
		changes = append(changes, history.Change{Reason: reason, Message: kube.Clip(message, maxTold)})
	}
	approved := after.Status.ApprovedReason
	if after.Status.State == fleet.RegistrationGranted && approved != "" && approved != reasons.KeyProved &&
		before.Status.State != fleet.RegistrationGranted {
		add(clusterv1beta1.HistoryApproved, "a user approved the request, for Cluster "+after.Status.ClusterName)
	}
	switch after.Status.State {
	case fleet.RegistrationPending:
		add(clusterv1beta1.HistoryApprovalRequired, after.Status.Message)
	case fleet.RegistrationDenied:
		add(clusterv1beta1.HistoryDenied, after.Status.Message)
	case fleet.RegistrationWaiting, fleet.RegistrationConflict, fleet.RegistrationGranted: // no user decides
	}
	return changes
}
