package dashboard

import (
	"cmp"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// The paths of the views with a search.
const (
	fleetPath        = "/"
	deliveriesPath   = "/deliveries"
	registrationPath = "/registration"
)

// Displays of the members: a table, or a wall with a square for each.
const (
	asTable = "table"
	asWall  = "wall"
)

// Groups of squares on the wall.
const (
	byWorkspace = "workspace"
	byState     = "state"
	byVersion   = "version"
	byLabel     = "label"
)

var groupNames = []string{byWorkspace, byState, byVersion, byLabel}

// query selects the objects of a view, and arranges the members. Its fields are the flags of muster
// get, as far as the command has them.
type query struct {
	// Path is the path of the view.
	Path                             string
	Namespace, Name, Selector, State string
	// Version, Kind and Provider select members.
	Version, Kind, Provider string
	// View is the display of the members, Group and Label arrange the wall.
	View, Group, Label string
	// Sort is a column of the table, with a leading minus for the reverse order. Columns are the
	// columns shown; empty for the usual ones. Page counts from 1.
	Sort    string
	Columns []string
	Page    int
	// Problem is the reason why the query is not valid; empty if it is.
	Problem  string
	selector labels.Selector
}

// queryOf returns the query of an address. For an invalid query it also returns an error. An
// invalid query selects nothing, and has the values of the address for the form.
func queryOf(path string, values url.Values) (query, error) {
	q := query{Path: path, Namespace: values.Get("namespace"), Name: strings.TrimSpace(values.Get("name")),
		Selector: strings.TrimSpace(values.Get("selector")), State: values.Get("state"),
		Version: values.Get("version"), Kind: values.Get("kind"), Provider: values.Get("provider"),
		View: cmp.Or(values.Get("view"), asTable), Sort: values.Get("sort"), Columns: values["column"],
		Group: cmp.Or(values.Get("group"), byWorkspace), Label: strings.TrimSpace(values.Get("label"))}
	problem := q.parse(values)
	if problem == nil {
		return q, nil
	}
	q.Problem, q.selector = problem.Error(), labels.Nothing()
	q.View, q.Group, q.Sort, q.Columns, q.Page = asTable, byWorkspace, "", nil, 1
	return q, &inputError{problem}
}

// parse checks the values.
func (q *query) parse(values url.Values) (err error) {
	if q.selector, err = labels.Parse(q.Selector); err != nil {
		return fmt.Errorf("invalid label selector %q: %w; write it as for kubectl, for example env=prod,region!=eu",
			q.Selector, err)
	}
	if q.Page, err = strconv.Atoi(cmp.Or(values.Get("page"), "1")); err != nil || q.Page < 1 {
		return fmt.Errorf("invalid page %q: pages count from 1", values.Get("page"))
	}
	if !slices.Contains(groupNames, q.Group) {
		return fmt.Errorf("cannot group members by %q; use %s, %s, %s or %s",
			q.Group, byWorkspace, byState, byVersion, byLabel)
	}
	if q.View != asTable && q.View != asWall {
		return fmt.Errorf("cannot show members as %q: use %s or %s", q.View, asTable, asWall)
	}
	for _, name := range append(slices.Clip(q.Columns), cmp.Or(strings.TrimPrefix(q.Sort, "-"), columnName)) {
		if columnOf(name) == nil {
			return fmt.Errorf("the table of members has no column %q", name)
		}
	}
	return nil
}

// matches reports whether an object is shown, regardless of its state.
func (q *query) matches(e *entry) bool {
	return (q.Namespace == "" || e.namespace == q.Namespace) && q.isNamed(e) && q.selector.Matches(&e.labels) &&
		(q.Version == "" || q.Version == e.version) &&
		(q.Kind+q.Provider == "" || e.facts != nil && q.suits(e.facts))
}

// suits reports whether a member has the kind and the provider.
func (q *query) suits(f *facts) bool {
	return (q.Kind == "" || q.Kind == f.kind) && (q.Provider == "" || q.Provider == f.provider)
}

// isNamed reports whether a name contains the search text, in any case of letters. The display
// name of a member counts, too. Requests have generated names: their Clusters count.
func (q *query) isNamed(e *entry) bool {
	lower := strings.ToLower(q.Name) // as all names of objects
	if strings.Contains(e.name, lower) || strings.Contains(strings.ToLower(e.displayName), lower) {
		return true
	}
	return e.asked != nil && (strings.Contains(e.asked.cluster, q.Name) || strings.Contains(e.asked.clientID, q.Name))
}

// Searched reports whether the query limits the objects.
func (q query) Searched() bool { return q.Namespace != "" || q.limitsMembers() }

// limitsMembers reports whether the query selects some members of a workspace.
func (q query) limitsMembers() bool {
	return q.Name+q.Selector+q.State+q.Version+q.Kind+q.Provider != ""
}

// matching returns the matching entries.
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
		"namespace": q.Namespace, "name": q.Name, "selector": q.Selector, "state": q.State, "version": q.Version, "kind": q.Kind,
		"provider": q.Provider, "view": q.View, "group": q.Group, "label": q.Label, "sort": q.Sort, "page": strconv.Itoa(q.Page),
	} {
		usual := map[string]string{"view": asTable, "group": byWorkspace, "page": "1", "sort": columnName}[key]
		if value != "" && value != usual && (key != "page" || q.Page > 1) {
			values.Set(key, value)
		}
	}
	if len(q.Columns) > 0 {
		values["column"] = q.Columns
	}
	if len(values) == 0 {
		return template.URL(q.Path) //nolint:gosec // it is one of the constants
	}
	return template.URL(q.Path + "?" + values.Encode()) //nolint:gosec // it is encoded
}
