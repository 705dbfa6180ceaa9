package dashboard

import (
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// States of a member over time.
const (
	bandAwaited     = "Awaited"
	bandOnline      = "Online"
	bandQuarantined = view.StateQuarantined
	// bandUnsteady is a time with several changes in one entry of the history.
	bandUnsteady = "Unsteady"
)

// bandStates are the states after a change; other changes leave the state as it is.
var bandStates = map[clusterv1beta1.HistoryReason]string{
	clusterv1beta1.HistoryJoined: bandOnline, clusterv1beta1.HistoryBack: bandOnline, clusterv1beta1.HistoryLost: "Lost",
	clusterv1beta1.HistoryLeft: "Left", clusterv1beta1.HistoryRevoked: "Revoked", clusterv1beta1.HistoryRestored: bandAwaited,
	clusterv1beta1.HistoryQuarantined: bandQuarantined, clusterv1beta1.HistoryQuarantineEnded: bandOnline,
}

// bandTones are the tones of the states without a tone in tables.
var bandTones = map[string]string{bandOnline: toneOK, bandUnsteady: toneWarn}

// leastBand is the least width of a state in the picture, in thousandths.
const leastBand = 3

// bands are the states of a member over time.
type bands struct {
	From time.Time
	Bar  []segment
	// Totals are the states with their times, the longest first.
	Totals []bandTotal
	// Text is the picture in a sentence.
	Text string
}

// bandTotal is the time of a member in a state.
type bandTotal struct {
	State, Tone string
	time        time.Duration
}

// For returns the time for people.
func (t bandTotal) For() string {
	now := time.Now()
	return view.Since(now.Add(-t.time), now)
}

// point is the begin of a state.
type point struct {
	at    time.Time
	state string
}

// bandsOf returns the states of a member since its creation, or since the oldest change in its
// history; nil without a change of the state.
func bandsOf(record client.Object, now time.Time) *bands {
	points := pointsOf(record)
	if len(points) == 0 || !points[0].at.Before(now) {
		return nil
	}
	b := &bands{From: points[0].at}
	times := map[string]time.Duration{}
	for i, p := range points {
		end := now
		if i+1 < len(points) {
			end = points[i+1].at
		}
		times[p.state] += end.Sub(p.at)
		share := func(d time.Duration) float64 { return 1000 * float64(d) / float64(now.Sub(b.From)) }
		x := min(share(p.at.Sub(b.From)), 1000-leastBand)
		b.Bar = append(b.Bar, segment{X: x, Width: max(leastBand, share(end.Sub(p.at))), Tone: bandTone(p.state)})
	}
	for state, total := range times {
		b.Totals = append(b.Totals, bandTotal{state, bandTone(state), total})
	}
	slices.SortFunc(b.Totals, func(x, y bandTotal) int {
		if x.time != y.time {
			return int(y.time - x.time)
		}
		return strings.Compare(x.State, y.State)
	})
	var texts []string
	for _, total := range b.Totals {
		texts = append(texts, total.State+" "+total.For())
	}
	b.Text = strings.Join(texts, ", ")
	return b
}

func bandTone(state string) string {
	if tone := bandTones[state]; tone != "" {
		return tone
	}
	return toneOf(state)
}

// pointsOf returns the begins of the states of a member, the oldest first.
func pointsOf(record client.Object) (points []point) {
	history := view.HistoryOf(record)
	var begins []point
	for i := range history {
		entry := &history[i]
		state := bandStates[entry.Reason]
		if state == "" {
			continue
		}
		if len(begins) == 0 && entry.Reason == clusterv1beta1.HistoryJoined {
			begins = append(begins, point{record.GetCreationTimestamp().Time, bandAwaited})
		}
		if entry.Changes() > 1 {
			begins = append(begins, point{entry.Time.Time, bandUnsteady})
		}
		begins = append(begins, point{entry.Last(), state})
	}
	slices.SortStableFunc(begins, func(a, b point) int { return a.at.Compare(b.at) })
	for _, p := range begins {
		if len(points) > 0 && points[len(points)-1].state == p.state {
			continue
		}
		points = append(points, p)
	}
	return points
}
