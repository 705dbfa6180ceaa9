package registration

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

// report writes where the request stands.
func (c *Controller) report(ctx context.Context, r *fleet.ClusterRegistration, d decision, answer []byte) error {
	after := r.DeepCopy()
	after.Status = fleet.ClusterRegistrationStatus{
		ClusterName: d.cluster,
		Granted:     d.state == fleet.RegistrationGranted,
		State:       d.state,
		Reason:      d.reason,
		Message:     d.message,
		Answer:      answer,
	}
	if err := kube.PatchStatus(ctx, c.Client, r, after); err != nil {
		return err
	}
	c.written.Store(after)
	if r.Status.State == d.state && r.Status.Reason == d.reason {
		return nil
	}
	ctrl.LoggerFrom(ctx).Info("Registration changed state", "from", r.Status.State, "to", d.state, "reason", d.reason, "cluster", d.cluster)
	if d.state == fleet.RegistrationDenied || d.state == fleet.RegistrationConflict {
		c.Recorder.Eventf(r, nil, corev1.EventTypeWarning, d.reason, "Register", "%s: %s", d.state, d.message)
	}
	return nil
}
