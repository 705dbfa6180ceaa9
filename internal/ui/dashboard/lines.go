package dashboard

import (
	"cmp"
	"net/http"
	"slices"
)

// mostLines limits the lines of a table: a page has a bounded size, regardless of the number of
// objects.
const mostLines = 200

// listing is the common part of table views.
type listing struct {
	query
	// Workspaces are the choices for the visitor.
	Workspaces []string
	// matching holds the objects of the search, in any state.
	matching []*entry
	stale    []string
	// Unlisted are the resources the visitor may list nowhere.
	Unlisted []string
	// invalid is the error of an invalid query; nil if it is valid.
	invalid error
}

// Hides reports whether the visitor may list a resource nowhere.
func (l *listing) Hides(resource string) bool { return slices.Contains(l.Unlisted, resource) }

// list reads the data of a table view for some resources.
func (s *Server) list(r *http.Request, v *visitor, resources ...string) (*listing, error) {
	q, invalid := queryOf(r.URL.Path, r.URL.Query())
	all, stale, err := s.entries(r.Context(), v, resources...)
	if err != nil {
		return nil, err
	}
	unlisted, err := s.unlisted(r.Context(), v, resources...)
	return &listing{
		query: q, Workspaces: workspacesOf(all), matching: q.matching(all), stale: stale, Unlisted: unlisted, invalid: invalid,
	}, err
}

// live returns the address for changes of the view.
func (l *listing) live(r *http.Request) string { return liveOf(r, digestOf(l.matching, l.stale)) }

// lines holds the lines of a table.
type lines struct {
	States []count
	// More is the number of matching but hidden objects.
	More  int
	shown []*entry
}

// lines returns the lines of the matching entries, in an order, as many as fit.
func (l *listing) lines(matching []*entry, order func(a, b *entry) int) lines {
	shown, more := atMost(mostLines, slices.SortedStableFunc(slices.Values(l.inState(matching)), order))
	return lines{l.counts(matching), more, shown}
}

// byUrgency orders entries with a problem first, then passing problems, then healthy entries.
func byUrgency(a, b *entry) int { return cmp.Compare(urgency(a), urgency(b)) }

func urgency(e *entry) int {
	switch {
	case e.finding == nil:
		return 2
	case e.finding.Passing:
		return 1
	}
	return 0
}
