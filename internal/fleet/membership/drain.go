package membership

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

const (
	// DrainSignEvery is the longest time between two signs of life of a running drain.
	DrainSignEvery = 30 * time.Second
	// drainGone is the time without a sign of life until a drain counts as stopped.
	drainGone = 3 * DrainSignEvery
	// mostDrained bounds the number of placements in the progress of a drain.
	mostDrained = 100_000
)

// DrainProgress is the progress of a drain, in an annotation of its member. It has numbers only,
// because users without access to the placements may read the member.
type DrainProgress struct {
	// Moved is the number of placements that have left, Total the number of all to move.
	Moved int `json:"moved"`
	Total int `json:"total"`
	// Seen is the last sign of life of the draining process, by its clock.
	Seen metav1.Time `json:"seen"`
	// Stopped: the process ended before all placements had left.
	Stopped bool `json:"stopped,omitempty"`
}

// DrainOf returns the progress of the drain of a cordoned member; nil without a drain, and for a
// malformed annotation.
func DrainOf(member metav1.Object) *DrainProgress {
	text := member.GetAnnotations()[fleet.AnnotationDrainProgress]
	if text == "" || !Cordoned(member) || Drained(member) {
		return nil
	}
	p := &DrainProgress{}
	if json.Unmarshal([]byte(text), p) != nil || p.Moved < 0 || p.Total > mostDrained || p.Moved > p.Total || p.Seen.IsZero() {
		return nil
	}
	return p
}

// Value returns the annotation for the progress.
func (p DrainProgress) Value() string {
	text, err := json.Marshal(p)
	if err != nil { // only for a time that no clock shows
		return ""
	}
	return string(text)
}

// Running reports whether the process still drains: its last sign of life is recent.
func (p *DrainProgress) Running(now time.Time) bool {
	return !p.Stopped && now.Sub(p.Seen.Time).Abs() < drainGone
}

// Reason returns the reason of the progress, for users.
func (p *DrainProgress) Reason(now time.Time) string {
	if p.Running(now) {
		return reasons.Draining
	}
	return reasons.DrainStopped
}

// Text returns the progress in a clause. since is the age of the last sign of life.
func (p *DrainProgress) Text(now time.Time, since string) string {
	if p.Running(now) {
		return fmt.Sprintf("draining: %d of %d placements moved", p.Moved, p.Total)
	}
	return fmt.Sprintf("drain stopped at %d of %d placements %s ago", p.Moved, p.Total, since)
}
