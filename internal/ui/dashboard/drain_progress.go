package dashboard

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// shownProgress is the progress of a drain in the annotation of its member.
type shownProgress struct {
	Moved, Total int
	// Seen is the last sign of life of the draining process, and Running reports whether it is recent.
	Seen    time.Time
	Running bool
}

// drainShownOn returns the progress of the drain of a member, by any user and process; nil without
// one.
func drainShownOn(member client.Object, now time.Time) *shownProgress {
	p := membership.DrainOf(member)
	if p == nil {
		return nil
	}
	return &shownProgress{Moved: p.Moved, Total: p.Total, Seen: p.Seen.Time, Running: p.Running(now)}
}

// drainMarks returns the annotations about the drain of a member; nil without a drain. Few members
// are being drained, so the cache keeps these annotations of no other member.
func drainMarks(member client.Object) map[string]string {
	if membership.DrainOf(member) == nil {
		return nil
	}
	return map[string]string{
		fleet.AnnotationCordoned:      member.GetAnnotations()[fleet.AnnotationCordoned],
		fleet.AnnotationDrainProgress: member.GetAnnotations()[fleet.AnnotationDrainProgress],
	}
}

// whyNow returns a function for the present problem of a member with a drain. The draining process
// may die without a word. For any other object, whyNow returns nil.
func whyNow(o client.Object) func() string {
	if membership.DrainOf(o) == nil {
		return nil
	}
	return func() string { return view.Because(o) }
}
