package dashboard

import (
	"cmp"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/ui/view"
)

// rowsOnPage is the number of members on a page of the table.
const rowsOnPage = 100

// facts are the columns of a member in the table.
type facts struct {
	kind, nodes, bundles, agent, provider string
	created, seen, expires                time.Time
	// online reports whether the hub counts the member as online.
	online bool
}

// factsOf returns the facts of a member. They keep no memory of the object.
func factsOf(o client.Object, labels labelSet) *facts {
	now := time.Now()
	text := func(column string) string { return strings.Clone(view.Column(o, column, now)) }
	f := &facts{
		kind: text("KIND"), nodes: text("NODES"), bundles: text("BUNDLES"), agent: text("AGENT"), created: o.GetCreationTimestamp().Time,
		seen: view.LastSeen(o), online: text("LAST-SEEN") == "online",
	}
	if expires := view.Expires(o); expires != nil {
		f.expires = expires.Time
	}
	for _, label := range slices.Backward(providerLabels) {
		f.provider = cmp.Or(labels.Get(label), f.provider)
	}
	if reported := text("PROVIDER"); f.provider == "" && reported != view.Nothing {
		f.provider = reported
	}
	return f
}

// providerLabels are the labels with the provider of a member, the first one with priority.
var providerLabels = []string{"provider.cattle.io", "provider"}

// column is a column of the table of members. Its value is a text, a time or a state. The order of
// the keys is the order of the values.
type column struct {
	Name, Label string
	text        func(*entry) string
	at          func(*entry) time.Time
	key         func(*entry) string
}

// columnName is the column of every table.
const columnName = "name"

// byText returns a column with a text.
func byText(name, label string, text func(*entry) string) *column {
	return &column{Name: name, Label: label, text: text, key: func(e *entry) string { return naturalKey(text(e)) }}
}

// byTime returns a column with a time, the latest first.
func byTime(name, label string, at func(*entry) time.Time) *column {
	return &column{Name: name, Label: label, at: at, key: func(e *entry) string { return latestFirst(at(e)) }}
}

// columns are all columns of the table of members.
var columns = []*column{
	byText(columnName, "Name", func(e *entry) string { return e.name }),
	{Name: "state", Label: "State", text: (*entry).State, key: func(e *entry) string { return strconv.Itoa(urgency(e)) + e.state }},
	byText("kind", "Kind", func(e *entry) string { return e.facts.kind }),
	byText("workspace", "Workspace", func(e *entry) string { return e.namespace }),
	byText("version", "Version", func(e *entry) string { return e.version }),
	byText("provider", "Provider", func(e *entry) string { return e.facts.provider }),
	byText("nodes", "Nodes", func(e *entry) string { return e.facts.nodes }),
	byText("bundles", "Bundles", func(e *entry) string { return e.facts.bundles }),
	byText("agent", "Agent", func(e *entry) string { return e.facts.agent }),
	byText("labels", "Labels", func(e *entry) string { return e.labels.String() }),
	byTime("age", "Age", func(e *entry) time.Time { return e.facts.created }),
	byTime("seen", "Last seen", func(e *entry) time.Time { return e.facts.seen }),
	byTime("expires", "Credential ends", func(e *entry) time.Time { return e.facts.expires }),
	byText("why", "Why", (*entry).Why),
}

// usualColumns are the columns shown without a choice.
var usualColumns = []string{"state", "version", "nodes", "bundles", "seen", "why"}

// columnOf returns a column by its name; nil if there is none.
func columnOf(name string) *column {
	if i := slices.IndexFunc(columns, func(c *column) bool { return c.Name == name }); i >= 0 {
		return columns[i]
	}
	return nil
}

// heading is the head of a column. Link sorts by it; Order is its order now: ascending, descending
// or none.
type heading struct {
	Label, Order string
	Link         template.URL
}

// cell is a cell of a row: a text, or a time.
type cell struct {
	Column, Label, Text string
	At                  time.Time
}

// row is a row of the table of members.
type row struct {
	*entry
	Cells []cell
	// Old reports whether the values date from before the loss of the member.
	Old bool
}

// Class returns the class of its state.
func (r row) Class() string { return classOf(r.state) }

// tabled is the table of members, one page of it.
type tabled struct {
	Headings    []heading
	Rows        []row
	First, Last int
	Total       int
	// Page is the number of the page, Pages the number of all pages.
	Page, Pages    int
	Previous, Next template.URL
}

// members returns the members on the page.
func (t *tabled) members() (members []*entry) {
	for _, r := range t.Rows {
		members = append(members, r.entry)
	}
	return members
}

// choosable is a column that a visitor may show.
type choosable struct {
	*column
	Shown bool
}

// ColumnChoices returns the columns besides the name.
func (q query) ColumnChoices() (choices []choosable) {
	shown := q.shownColumns()
	for _, c := range columns[1:] {
		choices = append(choices, choosable{c, slices.Contains(shown, c)})
	}
	return choices
}

// shownColumns returns the columns of the query besides the name, in their usual order.
func (q *query) shownColumns() (shown []*column) {
	names := q.Columns
	if len(names) == 0 {
		names = usualColumns
	}
	for _, c := range columns[1:] {
		if slices.Contains(names, c.Name) {
			shown = append(shown, c)
		}
	}
	return shown
}

// order returns the name of the column to sort by.
func (q *query) order() (column string, descending bool) {
	return strings.CutPrefix(cmp.Or(q.Sort, columnName), "-")
}

// table returns a page of the table of some members, in the order of their names.
func (q query) table(members []*entry) (t tabled) {
	key, descending := q.order()
	sorted := members
	if key != columnName || descending {
		sorted = sortedBy(columnOf(key), members, descending)
	}
	shown := q.shownColumns()
	for _, c := range append(columns[:1:1], shown...) {
		h, to := heading{Label: c.Label}, q
		to.Sort, to.Page = c.Name, 1
		if c.Name == key {
			h.Order = "ascending"
			if descending {
				h.Order = "descending"
			} else {
				to.Sort = "-" + c.Name
			}
		}
		h.Link = to.Link()
		t.Headings = append(t.Headings, h)
	}
	t.Total = len(sorted)
	last := max(0, t.Total-1) / rowsOnPage
	begin := min(q.Page-1, last) * rowsOnPage
	end := min(begin+rowsOnPage, t.Total)
	for _, e := range sorted[begin:end] {
		t.Rows = append(t.Rows, rowOf(e, shown))
	}
	t.First, t.Last = begin+1, end
	t.Page, t.Pages = begin/rowsOnPage+1, last+1
	to := q
	if to.Page = begin / rowsOnPage; to.Page > 0 {
		t.Previous = to.Link()
	}
	if to.Page = begin/rowsOnPage + 2; end < t.Total {
		t.Next = to.Link()
	}
	return t
}

func rowOf(e *entry, shown []*column) row {
	r := row{entry: e, Old: toneOf(e.state) == toneCritical}
	for _, c := range shown {
		one := cell{Column: c.Name, Label: c.Label}
		switch {
		case c.Name == "seen" && e.facts.online:
			one.Text = "online"
		case c.at != nil:
			one.At = c.at(e)
		default:
			if one.Text = c.text(e); one.Text == view.Nothing {
				one.Text = ""
			}
		}
		r.Cells = append(r.Cells, one)
	}
	return r
}
