package bundle

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	contents "github.com/muster-fleet/muster/internal/delivery"
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
	err := d.patchStatus(ctx, s.deployment, status)
	switch {
	case err == nil:
		delivery.written, delivery.reporting = &status, retry.Failed()
	case ctx.Err() == nil && !apierrors.IsNotFound(err):
		d.queue.AddAfter(name, delivery.reporting.Step())
	}
	return err == nil
}

// patchStatus writes the status of a deployment with its display, and logs a failure. The hub
// writes the display by itself only if it knows better, such as about a lost cluster. So a display
// alone is no reason to report.
func (d *Deployer) patchStatus(ctx context.Context, before *fleet.BundleDeployment, status fleet.BundleDeploymentStatus) error {
	after := *before
	after.Status = status
	status.Display = contents.Display(&after)
	patch, err := patchOf(status)
	if err == nil {
		err = d.Hub.PatchStatus(ctx, hubclient.BundleDeployments, before.Name, patch)
	}
	if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) {
		d.Log.Info("Failed to report a deployment", "deployment", before.Name, "reason", d.Hub.Explain(err))
	}
	return err
}
