package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/muster-fleet/muster/internal/view"
)

const (
	// namedUpTo is up to how many tiles show the names of their members.
	namedUpTo = 300
	// recently is for how long a change is shown as one.
	recently = time.Hour
	// mostRecent is how many changes are shown.
	mostRecent = 10
	// shownNames is how many members are named that have the same trouble.
	shownNames = 5
)

// Groups of tiles.
const (
	byWorkspace = "workspace"
	byState     = "state"
	byVersion   = "version"
	byLabel     = "label"
)

var groupNames = []string{byWorkspace, byState, byVersion, byLabel}

// query is which members are shown, and in which groups. Its fields are the flags of muster get, as far as that has them.
type query struct {
	Namespace, Name, Selector, State string
	Group, Label                     string
	selector                         labels.Selector
}

func queryOf(values url.Values) (query, error) {
	q := query{Namespace: values.Get("namespace"), Name: strings.TrimSpace(values.Get("name")), Selector: strings.TrimSpace(values.Get("selector")), State: values.Get("state"),
		Group: cmp.Or(values.Get("group"), byWorkspace), Label: strings.TrimSpace(values.Get("label"))}
	var err error
	if q.selector, err = labels.Parse(q.Selector); err != nil {
		return q, &inputError{fmt.Errorf("the selector %q: %w; it is one as in kubectl, such as env=prod,region!=eu", q.Selector, err)}
	}
	if !slices.Contains(groupNames, q.Group) {
		return q, &inputError{fmt.Errorf("members cannot be grouped by %q: it is %s, %s, %s or %s", q.Group, byWorkspace, byState, byVersion, byLabel)}
	}
	return q, nil
}

// matches says whether a member is shown, whatever its state is.
func (q *query) matches(e *entry) bool {
	return (q.Namespace == "" || e.namespace == q.Namespace) && strings.Contains(e.name, q.Name) && q.selector.Matches(labels.Set(e.labels))
}

// group is in which group a member is.
func (q *query) group(e *entry) string {
	switch q.Group {
	case byState:
		return e.state
	case byVersion:
		return e.version
	case byLabel:
		return cmp.Or(e.labels[q.Label], "without "+cmp.Or(q.Label, "a label"))
	}
	return cmp.Or(e.namespace, "MemberClusters")
}

// entries are those of some resources that a visitor sees, in the order of their names, and why they are not all or not what is so now.
func (s *Server) entries(ctx context.Context, v *visitor, resources ...string) (all []*entry, stale []string, err error) {
	return seenBy(ctx, v, s.roll.of, resources)
}

// entriesNamed are those of a name, however many there are of others.
func (s *Server) entriesNamed(ctx context.Context, v *visitor, name string, resources ...string) (all []*entry, stale []string, err error) {
	return seenBy(ctx, v, func(resource string) ([]*entry, error) { return s.roll.named(resource, name) }, resources)
}

func seenBy(ctx context.Context, v *visitor, read func(resource string) ([]*entry, error), resources []string) (all []*entry, stale []string, err error) {
	for _, resource := range resources {
		entries, problem := read(resource)
		seen, err := v.seen(ctx, resource, entries)
		if err != nil {
			return nil, nil, err
		}
		if problem != nil {
			stale = append(stale, staleness(problem))
		}
		if len(all) == 0 {
			all = seen // in order as they are, as most fleets have one kind of members
			continue
		}
		if len(seen) > 0 {
			all = append(slices.Clip(all), seen...)
			slices.SortStableFunc(all, func(a, b *entry) int { return strings.Compare(a.name, b.name) })
		}
	}
	return all, stale, nil
}

// staleness says what a problem of the roll means for a page.
func staleness(problem error) string {
	if apierrors.IsForbidden(problem) {
		return "Not shown: " + problem.Error()
	}
	return "This may not be what is so now: " + problem.Error()
}

// shown is the view of the fleet.
type shown struct {
	query
	Groups []*group
	// Workspaces and States are what can be chosen.
	Workspaces []string
	Summary    summary
	tiles      []*entry
}

// GroupNames are the groups that there can be.
func (*shown) GroupNames() []string { return groupNames }

// group is some tiles with a heading.
type group struct {
	Name  string
	Tiles []tile
}

// tile is one member.
type tile struct {
	*entry
	// Label is as much of the name as there is room for, and as the heading does not say.
	Label string
}

// tile is that of a member which is one of so many.
func (q *query) tile(e *entry, of int) tile {
	switch {
	case of > namedUpTo:
		return tile{e, ""}
	case q.Group == byWorkspace:
		return tile{e, e.bare}
	}
	return tile{e, e.name}
}

// summary is what is shown beside the tiles.
type summary struct {
	Total    int
	States   []count
	Troubles []trouble
	Recent   []tile
}

// count is how many members are in a state, and where only those are shown.
type count struct {
	State  string
	Count  int
	Link   template.URL
	Chosen bool
}

// trouble is what several members have, some of which are named.
type trouble struct {
	*view.Trouble
	More int
}

// Since is when a condition of the member changed last.
func (t tile) Since() time.Time { return t.since }

// Shown are the names that are shown.
func (t trouble) Shown() []string { return t.Names[:min(shownNames, len(t.Names))] }

// pick are the members that match.
func (q *query) pick(all []*entry) []*entry {
	var picked []*entry
	for _, e := range all {
		if q.matches(e) && (q.State == "" || q.State == e.state) {
			picked = append(picked, e)
		}
	}
	return picked
}

func (q query) show(all []*entry, now time.Time) *shown {
	f := &shown{query: q, Summary: q.summarize(all, now), tiles: q.pick(all)}
	workspaces := map[string]bool{}
	for _, e := range all {
		if e.namespace != "" {
			workspaces[e.namespace] = true
		}
	}
	f.Workspaces = slices.Sorted(maps.Keys(workspaces))
	groups := map[string]*group{}
	for _, e := range f.tiles {
		name := q.group(e)
		if groups[name] == nil {
			groups[name] = &group{Name: name}
		}
		groups[name].Tiles = append(groups[name].Tiles, q.tile(e, len(f.tiles)))
	}
	f.Groups = slices.SortedFunc(maps.Values(groups), func(a, b *group) int { return strings.Compare(a.Name, b.Name) })
	return f
}

// summarize counts the members that match, in each state, and says what is wrong with them and what changed.
func (q query) summarize(all []*entry, now time.Time) (s summary) {
	states, troubles := map[string]int{}, view.Troubles{}
	for _, e := range all {
		if !q.matches(e) {
			continue
		}
		s.Total++
		states[e.state]++
		if e.finding != nil {
			troubles.Add(e.name, *e.finding)
		}
		if now.Sub(e.since) < recently {
			s.Recent = append(s.Recent, tile{e, e.name})
		}
	}
	slices.SortStableFunc(s.Recent, func(a, b tile) int { return b.since.Compare(a.since) })
	s.Recent = s.Recent[:min(mostRecent, len(s.Recent))]
	for _, t := range troubles.Sorted() {
		s.Troubles = append(s.Troubles, trouble{t, max(0, len(t.Names)-shownNames)})
	}
	for _, state := range slices.Sorted(maps.Keys(states)) {
		only := q
		if only.State = state; q.State == state {
			only.State = "" // once more shows all again
		}
		s.States = append(s.States, count{state, states[state], only.link(), q.State == state})
	}
	return s
}

// link is the path of the view of a query.
func (q query) link() template.URL {
	values := url.Values{}
	for key, value := range map[string]string{"namespace": q.Namespace, "name": q.Name, "selector": q.Selector, "state": q.State, "label": q.Label} {
		if value != "" {
			values.Set(key, value)
		}
	}
	if q.Group != byWorkspace {
		values.Set("group", q.Group)
	}
	if len(values) == 0 {
		return "/"
	}
	return template.URL("/?" + values.Encode()) //nolint:gosec // it is encoded
}

// fleet is the view of all members.
func (s *Server) fleet(w http.ResponseWriter, r *http.Request, v *visitor) error {
	q, err := queryOf(r.URL.Query())
	if err != nil {
		return err
	}
	all, stale, err := s.entries(r.Context(), v, clusters, memberClusters)
	if err != nil {
		return err
	}
	f := q.show(all, time.Now())
	return s.show(w, r, v, "fleet", page{Title: "Fleet", View: "fleet", Stale: stale, Live: liveOf(r, digestOf(f.tiles, stale)), Body: f})
}
