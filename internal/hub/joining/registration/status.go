package registration

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
)

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
