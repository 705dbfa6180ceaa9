package deploy

import (
	"context"
	"fmt"

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
		d.queue.AddAfter(name, of.pace.Step())
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
		of.written = &status
	case ctx.Err() != nil, apierrors.IsNotFound(err):
	default:
		d.Log.Info("reporting a deployment failing", "deployment", name, "reason", d.Hub.Explain(err))
		d.queue.AddAfter(name, of.pace.Step())
	}
	return err == nil
}

// RemoveAll uninstalls everything that was delivered to this member, whatever the hub says, and returns how much is left. It is what a member
// does that leaves with policy Delete; the caller sees to it that Run is over.
func (d *Deployer) RemoveAll(ctx context.Context) (left int, err error) {
	found, err := d.Cluster.List(ctx)
	if err != nil {
		return 0, err
	}
	var failed error
	for name, summary := range found {
		if summary.Member != d.Member {
			continue
		}
		if err := d.uninstall(ctx, name, summary); err != nil {
			left++
			failed = fmt.Errorf("%d releases are left, one because of %w", left, err)
		}
	}
	return left, failed
}
