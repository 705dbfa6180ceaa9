package bundle

import (
	"context"
	"fmt"
	"time"

	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/retry"
)

const (
	// firstCorrection and lastCorrection bound the time between two corrections of contested drift.
	firstCorrection = 5 * time.Second
	lastCorrection  = 5 * time.Minute
	// calm is the time without a correction at the end of a series.
	calm = 10 * time.Minute
)

// countCorrection counts a correction. Each correction in a series doubles the time until the next.
func (delivery *delivery) countCorrection(now time.Time) {
	if now.Sub(delivery.correctAt) > calm {
		delivery.corrections = 0
	}
	delivery.corrections++
	delivery.correctAt = now.Add(retry.Doubled(firstCorrection, delivery.corrections, lastCorrection))
}

// contested reports whether drift comes back after each correction.
func (delivery *delivery) contested(now time.Time) bool {
	return delivery.corrections > 2 && now.Before(delivery.correctAt.Add(calm))
}

// correct reverts drift.
func (d *Deployer) correct(ctx context.Context, delivery *delivery, s observation) error {
	spec := s.deployment.Spec
	how := correction(spec)
	err := d.detector.Correct(ctx, delivery.set, spec.Options, how.Force)
	if err == nil {
		delivery.countCorrection(d.Clock.Now())
		d.Log.Info("Drift corrected", "deployment", s.deployment.Name, "objects", s.modified)
		return nil
	}
	err = fmt.Errorf("it could not be corrected: %w", err)
	if how.KeepFailHistory && delivery.failure.message == "" {
		if recordErr := d.Cluster.RecordFailedCorrection(ctx, *delivery.release, spec.Options, err); recordErr != nil {
			err = fmt.Errorf("%w; %w", err, recordErr)
		}
	}
	return withReason(reasons.CorrectionFailed, err)
}
