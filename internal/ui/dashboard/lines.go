package dashboard

import (
	"cmp"
	"net/http"
	"slices"
)

// mostLines is how many lines of a table are shown: a page has a bounded size, however
// many objects there are.
const mostLines = 200

// listing is what views of tables have in common.
type listing struct {
	query
	// Workspaces are what can be chosen.
	Workspaces []string
	// matching are the objects that are searched for, in whatever state.
	matching []*entry
	stale    []string
}

// list looks up what a view of tables shows of some resources.
func (s *Server) list(r *http.Request, v *visitor, resources ...string) (*listing, error) {
	q, err := queryOf(r.URL.Path, r.URL.Query())
	if err != nil {
		return nil, err
	}
	all, stale, err := s.entries(r.Context(), v, resources...)
	if err != nil {
		return nil, err
	}
	return &listing{query: q, Workspaces: workspacesOf(all), matching: q.matching(all), stale: stale}, nil
}

// live is where the changes of the view are sent.
func (l *listing) live(r *http.Request) string { return liveOf(r, digestOf(l.matching, l.stale)) }

// lines are those of a table.
type lines struct {
	States []count
	// More is how many match besides those that are shown.
	More  int
	shown []*entry
}

// lines are those of the entries that match, in an order, of which as many are shown as fit.
func (l *listing) lines(matching []*entry, order func(a, b *entry) int) lines {
	shown, more := atMost(mostLines, slices.SortedStableFunc(slices.Values(l.inState(matching)), order))
	return lines{l.counts(matching), more, shown}
}

// byUrgency is the order of what somebody has to see to, what only has to be waited
// for, and what is well.
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
