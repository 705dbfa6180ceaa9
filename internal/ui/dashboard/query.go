package dashboard

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// The paths of the views with a search.
const (
	fleetPath        = "/"
	deliveriesPath   = "/deliveries"
	registrationPath = "/registration"
)

// Groups of tiles.
const (
	byWorkspace = "workspace"
	byState     = "state"
	byVersion   = "version"
	byLabel     = "label"
)

var groupNames = []string{byWorkspace, byState, byVersion, byLabel}

// query selects the objects of a view, and groups the members. Its fields are the flags of muster
// get, as far as that command has them.
type query struct {
	// Path is the path of the view.
	Path                             string
	Namespace, Name, Selector, State string
	Group, Label                     string
	selector                         labels.Selector
}

func queryOf(path string, values url.Values) (query, error) {
	q := query{Path: path, Namespace: values.Get("namespace"), Name: strings.TrimSpace(values.Get("name")),
		Selector: strings.TrimSpace(values.Get("selector")), State: values.Get("state"),
		Group: cmp.Or(values.Get("group"), byWorkspace), Label: strings.TrimSpace(values.Get("label"))}
	var err error
	if q.selector, err = labels.Parse(q.Selector); err != nil {
		return q, &inputError{fmt.Errorf("invalid label selector %q: %w; write it as for kubectl, for example env=prod,region!=eu",
			q.Selector, err)}
	}
	if !slices.Contains(groupNames, q.Group) {
		return q, &inputError{fmt.Errorf("cannot group members by %q: use %s, %s, %s or %s",
			q.Group, byWorkspace, byState, byVersion, byLabel)}
	}
	return q, nil
}

// matches reports whether an object is shown, regardless of its state.
func (q *query) matches(e *entry) bool {
	return (q.Namespace == "" || e.namespace == q.Namespace) && q.isNamed(e) && q.selector.Matches(&e.labels)
}

// isNamed reports whether a name contains the search text. Requests have generated names, so the
// names of their clusters count, too.
func (q *query) isNamed(e *entry) bool {
	if strings.Contains(e.name, q.Name) {
		return true
	}
	return e.asked != nil && (strings.Contains(e.asked.cluster, q.Name) || strings.Contains(e.asked.clientID, q.Name))
}

// Searched reports whether the query limits the objects.
func (q query) Searched() bool { return q.Namespace+q.Name+q.Selector+q.State != "" }

// matching returns the entries that match.
func (q *query) matching(all []*entry) (matching []*entry) {
	for _, e := range all {
		if q.matches(e) {
			matching = append(matching, e)
		}
	}
	return matching
}

// inState returns the entries in the state of the query, or all if it has none.
func (q *query) inState(matching []*entry) (in []*entry) {
	if q.State == "" {
		return matching
	}
	for _, e := range matching {
		if q.State == e.state {
			in = append(in, e)
		}
	}
	return in
}

// group returns the group of a member.
func (q *query) group(e *entry) string {
	switch q.Group {
	case byState:
		return e.state
	case byVersion:
		return e.version
	case byLabel:
		return cmp.Or(e.labels.Get(q.Label), "without "+cmp.Or(q.Label, "a label"))
	}
	return cmp.Or(e.namespace, "MemberClusters")
}

// Link returns the path of the view of a query.
func (q query) Link() template.URL {
	values := url.Values{}
	for key, value := range map[string]string{
		"namespace": q.Namespace, "name": q.Name, "selector": q.Selector, "state": q.State, "label": q.Label,
	} {
		if value != "" {
			values.Set(key, value)
		}
	}
	if q.Group != byWorkspace {
		values.Set("group", q.Group)
	}
	if len(values) == 0 {
		return template.URL(q.Path) //nolint:gosec // it is one of the constants
	}
	return template.URL(q.Path + "?" + values.Encode()) //nolint:gosec // it is encoded
}

// count is the number of objects in a state, with a link to only these.
type count struct {
	State  string
	Count  int
	Link   template.URL
	Chosen bool
}

// counts returns the counts of some entries.
func (q query) counts(matching []*entry) (counts []count) {
	states := map[string]int{}
	for _, e := range matching {
		states[e.state]++
	}
	for _, state := range slices.Sorted(maps.Keys(states)) {
		only := q
		if only.State = state; q.State == state {
			only.State = "" // a second click shows all again
		}
		counts = append(counts, count{state, states[state], only.Link(), q.State == state})
	}
	return counts
}

// workspacesOf returns the workspaces of some entries.
func workspacesOf(all []*entry) []string {
	workspaces := map[string]bool{}
	for _, e := range all {
		if e.namespace != "" {
			workspaces[e.namespace] = true
		}
	}
	return slices.Sorted(maps.Keys(workspaces))
}
