package dashboard

import (
	"cmp"
	"context"
	"errors"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/muster-fleet/muster/internal/ui/view"
)

const (
	// recently is the greatest age of a recent change.
	recently = time.Hour
	// mostRecent limits the changes shown.
	mostRecent = 10
	// shownNames limits the names of members with the same trouble.
	shownNames = 3
)

// entries returns the entries of some resources as a visitor may see them, in the order of their
// names. stale holds the reasons why they are incomplete or out of date.
func (s *Server) entries(ctx context.Context, v *visitor, resources ...string) (all []*entry, stale []string, err error) {
	return s.seenBy(ctx, v, s.cache.of, resources)
}

// entriesNamed returns the entries with a name, regardless of the number of others.
func (s *Server) entriesNamed(ctx context.Context, v *visitor, name string, resources ...string) (all []*entry, stale []string, err error) {
	return s.seenBy(ctx, v, func(resource string) ([]*entry, error) { return s.cache.named(resource, name) }, resources)
}

func (s *Server) seenBy(ctx context.Context, v *visitor, read func(resource string) ([]*entry, error),
	resources []string) (visible []*entry, stale []string, err error) {
	for _, resource := range resources {
		entries, problem := read(resource)
		seen, err := v.seen(ctx, resource, entries)
		if err != nil {
			return nil, nil, err
		}
		if problem != nil {
			stale = append(stale, s.staleness(problem))
		}
		visible = merged(visible, seen)
	}
	return visible, stale, nil
}

// merged returns the entries of both lists in the order of their names. Each list must be in this
// order.
func merged(a, b []*entry) []*entry {
	switch { // most fleets have one kind of members
	case len(a) == 0:
		return b
	case len(b) == 0:
		return a
	}
	all := make([]*entry, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if b[0].name < a[0].name {
			all, b = append(all, b[0]), b[1:]
		} else {
			all, a = append(all, a[0]), a[1:]
		}
	}
	return append(append(all, a...), b...)
}

const (
	// notShown is the prefix of a message about unreadable objects.
	notShown = "Not shown: "
	// outOfDate is the prefix of a message about objects that cannot be read at the moment.
	outOfDate = "This page may be out of date: "
)

// staleness returns the message of a page about a read problem. Only a user of the same account
// sees the answer of the API server: it would reveal names and addresses to others. The log has
// it.
func (s *Server) staleness(problem error) string {
	var failed *accountError
	foreign, forbidden := errors.As(problem, &failed) && s.shared, apierrors.IsForbidden(problem)
	switch {
	case foreign && forbidden:
		return notShown + "the account of the dashboard may not list " + failed.resource + "; the log of the dashboard has the details"
	case foreign:
		return outOfDate + "the dashboard cannot read " + failed.resource + " at the moment; its log has the details"
	case forbidden:
		return notShown + problem.Error()
	}
	return outOfDate + problem.Error()
}

// fleetResources are the resources of the fleet view, the members first.
var fleetResources = []string{clusters, memberClusters, requests, bundles, gitRepos, helmOps, clusterPlacements, placements}

// shown is the view of the fleet.
type shown struct {
	query
	// Filters are the choices for the visitor.
	Filters []filter
	Summary summary
	// Table is the display as a table, Groups are the display as a wall.
	Table  *tabled
	Groups []*group
	// Unlisted are the resources the visitor may list nowhere.
	Unlisted []string
	// Offers are the actions on members of the table.
	Offers []bulkOffer
	// all holds the members the visitor may see. matching holds the matching ones, in any state, and
	// tiles the members shown.
	all, matching, tiles []*entry
	// others holds further objects with a problem: requests, Bundles, their sources, and placements.
	others []*entry
	stale  []string
	// summary is its text in the browser.
	summary string
}

// GroupNames returns the possible groups.
func (*shown) GroupNames() []string { return groupNames }

// Shown returns the number of members on the page and its further pages.
func (f *shown) Shown() int { return len(f.tiles) }

// As returns the path of the same members in another display.
func (f *shown) As(display string) template.URL {
	to := f.query
	to.View, to.Page = display, 1
	return to.Link()
}

// tileID returns the ID of a tile in the page.
func tileID(e *entry) string { return "m:" + e.name }

// group is some tiles with a heading.
type group struct {
	Name  string
	Tiles []tile
}

// tile is one member.
type tile struct{ *entry }

// summary is the data beside the tiles.
type summary struct {
	Total    int
	States   []count
	Bar      []segment
	Troubles []trouble
	Recent   []tile
	// Plot has the changes of the last hours; nil if a search limits the page.
	Plot *plot
}

// trouble is a problem of several objects; some of them are named.
type trouble struct {
	*view.Trouble
	Shown []link
	More  int
}

// link leads to the page of an object.
type link struct{ Name, Path string }

// ID returns the ID of the tile in the page.
func (t tile) ID() string { return tileID(t.entry) }

// Since returns the time of the last change of a member's condition.
func (t tile) Since() time.Time { return t.since }

// look returns the fleet as a visitor may see it.
func (s *Server) look(ctx context.Context, v *visitor, q query) (*shown, error) {
	f := &shown{query: q}
	var err error
	if f.all, f.stale, err = s.entries(ctx, v, clusters, memberClusters); err != nil {
		return nil, err
	}
	f.matching = q.matching(f.all)
	f.tiles = q.inState(f.matching)
	if q.limitsMembers() { // a search limits the page to members
		return f, nil
	}
	others, stale, err := s.entries(ctx, v, fleetResources[2:]...)
	if err != nil {
		return nil, err
	}
	for _, e := range others {
		if e.finding != nil && !e.finding.Passing && (q.Namespace == "" || q.Namespace == e.namespace) {
			f.others = append(f.others, e)
		}
	}
	f.stale = append(f.stale, slices.DeleteFunc(stale, func(why string) bool { return strings.HasPrefix(why, notShown) })...)
	return f, nil
}

// digest changes if any other data must be shown, except for ages.
func (f *shown) digest() string {
	return digestOf(append(slices.Clip(f.matching), f.others...), f.stale)
}

// render adds the data for the whole page only, except for the summary.
func (f *shown) render() {
	f.Filters = f.filtersOf(f.all)
	if f.View == asTable {
		table := f.table(f.tiles)
		f.Table = &table
		return
	}
	groups := map[string]*group{}
	for _, e := range f.tiles {
		name := f.group(e)
		if groups[name] == nil {
			groups[name] = &group{Name: name}
		}
		groups[name].Tiles = append(groups[name].Tiles, tile{e})
	}
	f.Groups = slices.SortedFunc(maps.Values(groups), func(a, b *group) int { return strings.Compare(a.Name, b.Name) })
}

// summarize counts the matching members in each state. It adds their problems, other objects with a
// problem, and the recent changes.
func (f *shown) summarize(now time.Time) (s summary) {
	troubles, paths := view.Troubles{}, map[string]string{}
	for _, e := range f.matching {
		if e.finding != nil {
			troubles.Add(e.name, *e.finding)
		}
		if now.Sub(e.since) < recently {
			s.Recent = append(s.Recent, tile{e})
		}
	}
	for _, e := range f.others {
		name := e.finding.Object()
		paths[name] = e.path()
		troubles.Add(name, *e.finding)
	}
	s.Total = len(f.matching)
	slices.SortStableFunc(s.Recent, func(a, b tile) int { return b.since.Compare(a.since) })
	s.Recent = s.Recent[:min(mostRecent, len(s.Recent))]
	for _, t := range troubles.Sorted() {
		names, more := atMost(shownNames, t.Names)
		one := trouble{Trouble: t, More: more}
		for _, name := range names {
			one.Shown = append(one.Shown, link{name, cmp.Or(paths[name], memberPath(name))})
		}
		s.Troubles = append(s.Troubles, one)
	}
	s.States = f.counts(f.matching)
	s.Bar = barOf(s.States)
	return s
}

// summaryOf returns the summary of a view with the plot.
func (s *Server) summaryOf(ctx context.Context, v *visitor, f *shown, now time.Time) (summary, error) {
	sum := f.summarize(now)
	if f.limitsMembers() {
		return sum, nil
	}
	var err error
	sum.Plot, err = s.plotOf(ctx, v, f.Namespace, now)
	return sum, err
}

// fleet is the view of all members.
func (s *Server) fleet(w http.ResponseWriter, r *http.Request, v *visitor) error {
	q, invalid := queryOf(fleetPath, r.URL.Query())
	f, err := s.look(r.Context(), v, q)
	if err != nil {
		return err
	}
	if f.Summary, err = s.summaryOf(r.Context(), v, f, time.Now()); err != nil {
		return err
	}
	f.render()
	if f.Unlisted, err = s.unlisted(r.Context(), v, clusters, memberClusters); err != nil {
		return err
	}
	if f.Table != nil {
		if f.Offers, err = bulkOffers(r.Context(), v, f.Table.members()); err != nil {
			return err
		}
	}
	p := page{Title: "Fleet", View: "fleet", Stale: f.stale, Live: liveOf(r, f.digest()), Body: f}
	return s.show(w, r, v, "fleet", p.invalidated(invalid))
}

// rows are the rows of a page of the table alone, for a browser with the rest of the page. Beside
// its rows, a page has numbers of all members.
func (s *Server) rows(w http.ResponseWriter, r *http.Request, v *visitor) error {
	q, err := queryOf(fleetPath, r.URL.Query())
	if err != nil {
		return err
	}
	all, _, err := s.entries(r.Context(), v, clusters, memberClusters)
	if err != nil {
		return err
	}
	text, err := part("fleet", "page", q.table(q.inState(q.matching(all))))
	if err != nil {
		return err
	}
	send(w, r, http.StatusOK, strings.NewReader(text))
	return nil
}
