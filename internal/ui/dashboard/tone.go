package dashboard

import (
	"slices"
	"strings"

	"github.com/muster-fleet/muster/internal/ui/view"
)

// Tones of states: each has a color and a shape in the style sheet.
const (
	toneOK       = "ok"
	toneWarn     = "warn"
	toneBad      = "bad"
	toneCritical = "critical"
	toneWaits    = "waits"
	toneIdle     = "idle"
)

// tones are in the order of the health bar.
var tones = []string{toneOK, toneWaits, toneIdle, toneWarn, toneBad, toneCritical}

var (
	criticalStates = []string{"Lost", "Revoked", "Denied", "Expired", "Left", "Failed"}
	badStates      = []string{"Unhealthy", "Conflict", "Stuck", "Stopped"}
	warnStates     = []string{
		"Pending", "WaitApplied", view.StateQuarantined, view.StateWaitingForApproval, stateMissing, stateExtra, "InProgress",
	}
	waitingStates = []string{"Awaited", view.StateNew, "Absent", "Waiting", view.StateWaitingForRun}
)

// toneOf returns the tone of a state of any table.
func toneOf(state string) string {
	severity := view.SeverityOf(state)
	switch {
	case severity == view.SeverityOK:
		return toneOK
	case slices.Contains(criticalStates, state):
		return toneCritical
	case slices.Contains(badStates, state), strings.HasPrefix(state, "Err"):
		return toneBad
	case slices.Contains(waitingStates, state):
		return toneWaits
	case severity == view.SeverityProblem, slices.Contains(warnStates, state):
		return toneWarn
	}
	return toneIdle
}

// classOf returns the classes of a state in the style sheet.
func classOf(state string) string { return "s-" + strings.ToLower(state) + " t-" + toneOf(state) }

// segment is a part of the health bar, in thousandths of its width.
type segment struct {
	X, Width float64
	Tone     string
}

// barOf returns the health bar of some counts: one segment for each tone, in a fixed order.
func barOf(counts []count) (bar []segment) {
	sums, total := map[string]int{}, 0
	for _, c := range counts {
		sums[toneOf(c.State)] += c.Count
		total += c.Count
	}
	x := 0.0
	for _, tone := range tones {
		if sums[tone] == 0 {
			continue
		}
		width := 1000 * float64(sums[tone]) / float64(total)
		bar = append(bar, segment{x, width, tone})
		x += width
	}
	return bar
}
