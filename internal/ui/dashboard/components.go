package dashboard

import (
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/ui/explain"
)

// specimen has an example of each component of the pages.
type specimen struct {
	Themes, States []string
	Counts         summary
	Finding        explain.Finding
	At             time.Time
	Plot           *plot
	Bands          *bands
}

// specimenPlot returns a plot with each change, and with delays of a thousand members.
func specimenPlot(now time.Time) *plot {
	sums := map[int64]perReason{}
	for ago, counts := range map[int64]perReason{20: {6, 0, 0}, 9: {0, 0, 3}, 8: {1, 2, 1}, 0: {0, 1, 0}} {
		sums[hourOf(now)-ago] = counts
	}
	p, delays := draw(sums, now), map[delayed]int32{}
	for ago := range int64(plottedHours) {
		if ago == 11 || ago == 12 { // a gap
			continue
		}
		hour := int32(hourOf(now) - ago)
		delays[delayed{hour, uint16(ago % 3)}], delays[delayed{hour, uint16(5 + 9*ago%17)}], delays[delayed{hour, 90}] = 900, 95, 5
	}
	p.Delay = delaysOfFleet(delays, now)
	return p
}

// specimenBands returns the states of a member that joined, was lost and came back.
func specimenBands(now time.Time) *bands {
	c := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.Add(-24 * time.Hour))}}
	for ago, reason := range []clusterv1beta1.HistoryReason{
		clusterv1beta1.HistoryBack, clusterv1beta1.HistoryLost, clusterv1beta1.HistoryJoined,
	} {
		at := metav1.NewTime(now.Add(-time.Duration(7*ago+2) * time.Hour))
		c.Status.History = append(c.Status.History, clusterv1beta1.HistoryEntry{Time: at, Reason: reason})
	}
	return bandsOf(c, now)
}

// components is the page with all components in both themes, for designers and tests.
func (s *Server) components(w http.ResponseWriter, r *http.Request, v *visitor) error {
	now, counts := time.Now(), []count{{State: "Ready", Count: 96}, {State: "NotReady", Count: 3}, {State: "Lost", Count: 1}}
	return s.show(w, r, v, "components", page{Title: "Components", Body: specimen{
		Themes: []string{"light", "dark"},
		States: []string{"Ready", "NotReady", "Unhealthy", "Lost", "Awaited", "Leaving"},
		Counts: summary{States: counts, Bar: barOf(counts)},
		Finding: explain.Finding{
			Problem: explain.Problem{Reason: reasons.AgentLost, Message: "no heartbeat"}, OnHub: []string{"muster explain NAME"},
		},
		At: now, Plot: specimenPlot(now), Bands: specimenBands(now),
	}})
}
