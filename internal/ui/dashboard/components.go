package dashboard

import (
	"net/http"
	"time"

	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/ui/explain"
)

// specimen has an example of each component of the pages.
type specimen struct {
	Themes, States []string
	Counts         summary
	Finding        explain.Finding
	At             time.Time
}

// components is the page with all components in both themes, for designers and tests.
func (s *Server) components(w http.ResponseWriter, r *http.Request, v *visitor) error {
	counts := []count{{State: "Ready", Count: 96}, {State: "NotReady", Count: 3}, {State: "Lost", Count: 1}}
	return s.show(w, r, v, "components", page{Title: "Components", Body: specimen{
		Themes: []string{"light", "dark"},
		States: []string{"Ready", "NotReady", "Unhealthy", "Lost", "Awaited", "Leaving"},
		Counts: summary{States: counts, Bar: barOf(counts)},
		Finding: explain.Finding{
			Problem: explain.Problem{Reason: reasons.AgentLost, Message: "no heartbeat"}, OnHub: []string{"muster explain NAME"},
		},
		At: time.Now(),
	}})
}
