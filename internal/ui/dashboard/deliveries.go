package dashboard

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-fleet/muster/internal/ui/view"
)

// deliveredResources are the resources of deliveries: Bundles, their GitRepos and HelmOps,
// placements and staged update runs.
var deliveredResources = []string{bundles, gitRepos, helmOps, clusterPlacements, placements, clusterRuns, runs}

// delivery is an object of these resources.
type delivery struct {
	*entry
	// Ready and All count the members with the delivery; both 0 if unknown.
	Ready, All int
}

// Path returns its page.
func (d delivery) Path() string { return d.path() }

// Kind returns the kind of the object.
func (d delivery) Kind() string { return strings.TrimSuffix(view.Title(d.object), " "+d.name) }

func (d delivery) Since() time.Time { return d.object.GetCreationTimestamp().Time }

// delivering is the view of deliveries.
type delivering struct {
	*listing
	lines
	Deliveries []delivery
}

// deliveries is the view of deliveries. Deliveries with a problem come first.
func (s *Server) deliveries(w http.ResponseWriter, r *http.Request, v *visitor) error {
	found, err := s.list(r, v, deliveredResources...)
	if err != nil {
		return err
	}
	shown := delivering{listing: found, lines: found.lines(found.matching, byUrgency)}
	for _, e := range shown.shown {
		column := membersColumn
		if slices.Contains([]string{bundles, gitRepos, helmOps}, e.resource) {
			column = readyColumn
		}
		d := delivery{entry: e}
		d.Ready, d.All = share(cmp.Or(e.members, view.Column(e.object, column, time.Now())))
		shown.Deliveries = append(shown.Deliveries, d)
	}
	p := page{Title: "Deliveries", View: "deliveries", Stale: found.stale, Live: found.live(r), Body: shown}
	return s.show(w, r, v, "deliveries", p.invalidated(found.invalid))
}

// share reads a part and a whole, such as 2/3; zeroes for other texts.
func share(text string) (part, whole int) {
	ready, all, _ := strings.Cut(text, "/")
	part, errPart := strconv.Atoi(ready)
	whole, errWhole := strconv.Atoi(all)
	if errPart != nil || errWhole != nil {
		return 0, 0
	}
	return part, whole
}
