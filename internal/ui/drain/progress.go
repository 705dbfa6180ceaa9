package drain

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
)

// stopFor limits the write about the end of an interrupted drain.
const stopFor = 5 * time.Second

// show writes the progress to the member if it has changed, and as a sign of life. The write fails
// if the member has changed since the last read: the drain never writes to an uncordoned member.
func (d *Drain) show(ctx context.Context, moves []*moving, stopped bool) {
	now := time.Now()
	progress := membership.DrainProgress{Seen: metav1.NewTime(now.Truncate(time.Second)), Stopped: stopped}
	for _, m := range moves {
		if m.stays != "" {
			continue
		}
		if progress.Total++; m.moved {
			progress.Moved++
		}
	}
	before := d.shown
	if before.Seen = progress.Seen; before == progress && now.Sub(d.shown.Seen.Time) < membership.DrainSignEvery {
		return
	}
	if progress.Total == 0 {
		return
	}
	patch := client.MergeFromWithOptions(d.Member.DeepCopyObject().(client.Object), client.MergeFromWithOptimisticLock{})
	annotations := d.Member.GetAnnotations()
	if annotations == nil {
		return // uncordoned
	}
	annotations[fleet.AnnotationDrainProgress] = progress.Value()
	d.Member.SetAnnotations(annotations)
	if d.Hub.Patch(ctx, d.Member, patch) == nil { // else the next read shows the cause, and the next look writes
		d.shown = progress
	}
}

// stop notes on the member that the drain has ended early, unless another decision has ended it.
// The context of an interrupted drain is over.
func (d *Drain) stop(ctx context.Context, moves []*moving, cause error) {
	if errors.As(cause, &stopped{}) || d.shown.Seen.IsZero() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopFor)
	defer cancel()
	if d.stillCordoned(ctx) == nil { // else the last sign of life tells the time
		d.show(ctx, moves, true)
	}
}
