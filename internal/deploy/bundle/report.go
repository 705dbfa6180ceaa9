package bundle

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/retry"
)

// report writes the status if it changed, and reports whether the hub has it.
func (d *Deployer) report(ctx context.Context, name string, delivery *delivery, s observation, decision decision) bool {
	if s.deployment == nil {
		return false
	}
	if s.unwatched != "" {
		// The list of a new kind takes a moment.
		if delivery.unwatched.IsZero() {
			delivery.unwatched = d.Clock.Now()
		}
		if left := ReportAfter - d.Clock.Since(delivery.unwatched); left > 0 {
			d.queue.AddAfter(name, left)
			return false
		}
		d.queue.AddAfter(name, delivery.watching.Step())
	} else {
		delivery.watching = retry.Failed()
	}
	if delivery.written != nil {
		s.deployment = s.deployment.DeepCopy()
		s.deployment.Status = *delivery.written
	}
	status := statusOf(decision, s, d.Clock.Now())
	if equality.Semantic.DeepEqual(status, s.deployment.Status) {
		return true
	}
	err := d.patchStatus(ctx, name, status)
	switch {
	case err == nil:
		delivery.written, delivery.reporting = &status, retry.Failed()
	case ctx.Err() == nil && !apierrors.IsNotFound(err):
		d.queue.AddAfter(name, delivery.reporting.Step())
	}
	return err == nil
}

// patchStatus writes a status, and logs a failure.
func (d *Deployer) patchStatus(ctx context.Context, name string, status fleet.BundleDeploymentStatus) error {
	patch, err := patchOf(status)
	if err == nil {
		err = d.Hub.PatchStatus(ctx, hubclient.BundleDeployments, name, patch)
	}
	if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) {
		d.Log.Info("Failed to report a deployment", "deployment", name, "reason", d.Hub.Explain(err))
	}
	return err
}
