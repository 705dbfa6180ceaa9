package explain

import (
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/fleet/membership"
)

// fromDrain returns a note about the drain of a member. Only the present time distinguishes a
// running drain from the drain of a dead process.
func fromDrain(base Problem, member client.Object) []Problem {
	progress, now := membership.DrainOf(member), time.Now()
	if progress == nil {
		return nil
	}
	text := progress.Text(now, duration.HumanDuration(max(0, now.Sub(progress.Seen.Time))))
	return []Problem{base.says("", progress.Reason(now), text, time.Time{})}
}
