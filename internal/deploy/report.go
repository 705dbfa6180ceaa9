package deploy

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// report writes the status if it says something new, and returns whether the hub has it then.
func (d *Deployer) report(ctx context.Context, name string, of *delivery, s seen, decision decision) bool {
	if s.deployment == nil {
		return false
	}
	if s.unwatched != "" {
		// A kind that was just deployed is listed in a moment.
		if of.unwatched.IsZero() {
			of.unwatched = d.Clock.Now()
		}
		if left := patience - d.Clock.Since(of.unwatched); left > 0 {
			d.queue.AddAfter(name, left)
			return false
		}
		d.queue.AddAfter(name, of.watching.next())
	} else {
		of.watching = pace{}
	}
	if of.written != nil {
		s.deployment = s.deployment.DeepCopy()
		s.deployment.Status = *of.written
	}
	status := statusOf(decision, s, d.Clock.Now())
	if equality.Semantic.DeepEqual(status, s.deployment.Status) {
		return true
	}
	patch, err := patchOf(status)
	if err == nil {
		err = d.Hub.ReportDeployment(ctx, name, patch)
	}
	switch {
	case err == nil:
		of.written, of.reporting = &status, pace{}
	case ctx.Err() != nil, apierrors.IsNotFound(err):
	default:
		d.Log.Info("reporting a deployment failing", "deployment", name, "reason", d.Hub.Explain(err))
		d.queue.AddAfter(name, of.reporting.next())
	}
	return err == nil
}
