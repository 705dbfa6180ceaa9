package dashboard

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/muster-fleet/muster/internal/ui/view"
)

// mostFound limits the objects in the result of a search over all kinds.
const mostFound = 20

// foundResources are the resources of the search, in the order of its results.
var foundResources = append([]string{clusters, memberClusters, requests, tokens}, deliveredResources...)

// finding is the page for finding members, deliveries, requests, tokens and pages by name.
type finding struct {
	Query string
	Pages []link
	Found []found
	// More is the number of objects found but not shown.
	More int
}

// found is an object of the result.
type found struct{ *entry }

// Path returns its page.
func (f found) Path() string { return f.path() }

// DisplayName returns the name for people of a member; empty without one.
func (f found) DisplayName() string { return f.displayName }

// Kind returns the kind of the object.
func (f found) Kind() string {
	return strings.TrimSpace(view.Title(kinds[f.resource].example))
}

// destinations are the pages without an object.
var destinations = []link{
	{"Fleet", fleetPath}, {"Wall of the fleet", fleetPath + "?view=" + asWall}, {"Deliveries", deliveriesPath},
	{"Registration", registrationPath}, {"Create a token", "/tokens/new"},
}

// find is the page of a search over all kinds, among the objects the visitor may list.
func (s *Server) find(w http.ResponseWriter, r *http.Request, v *visitor) error {
	shown := finding{Query: strings.TrimSpace(r.URL.Query().Get("q"))}
	for _, page := range destinations {
		if strings.Contains(strings.ToLower(page.Name), strings.ToLower(shown.Query)) {
			shown.Pages = append(shown.Pages, page)
		}
	}
	var stale []string
	if shown.Query != "" {
		all, reasons, err := s.entries(r.Context(), v, foundResources...)
		if err != nil {
			return err
		}
		stale = reasons
		matching := nearest(all, shown.Query)
		shown.More = max(0, len(matching)-mostFound)
		for _, e := range matching[:min(len(matching), mostFound)] {
			shown.Found = append(shown.Found, found{e})
		}
	}
	return s.show(w, r, v, "find", page{Title: "Find", View: "find", Stale: stale, Body: shown})
}

// nearest returns the entries with a text in their names: the whole name first, then names with the
// text at the start.
func nearest(entries []*entry, text string) []*entry {
	lower := strings.ToLower(text)
	distance := func(e *entry) int {
		switch {
		case e.bare == lower, e.name == lower:
			return 0
		case strings.HasPrefix(e.bare, lower):
			return 1
		}
		return 2
	}
	matching := (&query{Name: text, selector: labels.Everything()}).matching(entries)
	slices.SortStableFunc(matching, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(distance(a), distance(b)),
			cmp.Compare(slices.Index(foundResources, a.resource), slices.Index(foundResources, b.resource)))
	})
	return matching
}
