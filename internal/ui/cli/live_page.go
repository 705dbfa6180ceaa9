package cli

import (
	"cmp"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/ui/view"
)

// page is the state of muster watch: a table with a selected line, and the explanation of its
// object over it. Only drawing costs time by the height of the terminal; a change costs a row.
type page struct {
	kind
	style
	names         []string
	height        int
	explain       func(client.Object) tea.Msg
	entries       map[string]entry
	column        int
	reverse       bool
	filter        string
	typing        bool
	problem       error
	since         time.Time
	text          *scrolled
	shown         []string // the keys of the lines, sorted and filtered
	sizes         []string // the longest text of each column
	selected, top int
}

// entry is an object with its row.
type entry struct {
	object client.Object
	row    []string
}

// explanation is the text about an object.
type explanation struct {
	object client.Object
	text   string
}

// scrolled is a text with its first visible line. It has no lines until they arrive.
type scrolled struct {
	of    client.Object
	lines []string
	top   int
}

// tick draws the ages again.
type tick time.Time

func newPage(k kind, names []string, column int, s style) *page {
	s.width = cmp.Or(s.width, 80)
	return &page{kind: k, names: names, column: column, style: s, height: 24, entries: map[string]entry{}, sizes: k.columns}
}

// Init implements tea.Model.
func (p *page) Init() tea.Cmd { return again() }

func again() tea.Cmd { return tea.Tick(redrawn, func(now time.Time) tea.Msg { return tick(now) }) }

// Update implements tea.Model.
func (p *page) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch m := message.(type) {
	case tick:
		return p, again()
	case tea.WindowSizeMsg:
		p.width, p.height = m.Width, m.Height
	case changes:
		p.take(m, time.Now())
	case explanation:
		if p.text != nil && p.text.of == m.object {
			p.text.lines = strings.Split(strings.TrimSpace(m.text), "\n")
		}
	case tea.KeyPressMsg:
		return p, p.press(m)
	}
	p.scroll()
	return p, nil
}

// take applies changes, and keeps the selected object selected.
func (p *page) take(batch changes, now time.Time) {
	for _, c := range batch {
		p.problem, p.since = c.err, now
		if c.err != nil || len(p.names) > 0 && calledBy(c.object, p.names) == "" {
			continue
		}
		key := keyOf(c.object)
		if delete(p.entries, key); !c.gone {
			p.entries[key] = entry{c.object, view.Row(c.object, now)}
		}
	}
	p.arrange()
}

// arrange sorts and filters the lines.
func (p *page) arrange() {
	was := p.key()
	p.shown, p.sizes = p.shown[:0], slices.Clone(p.columns)
	for key, e := range p.entries {
		if !p.passes(e) {
			continue
		}
		p.shown = append(p.shown, key)
		for i, text := range e.row {
			if len(text) > len(p.sizes[i]) {
				p.sizes[i] = text
			}
		}
	}
	slices.SortFunc(p.shown, func(a, b string) int {
		order := p.compare(p.entries[a], p.entries[b])
		if p.reverse {
			order = -order
		}
		return cmp.Or(order, strings.Compare(a, b))
	})
	p.selected = max(slices.Index(p.shown, was), 0)
	p.scroll()
}

// passes reports whether a column has the text of the filter.
func (p *page) passes(e entry) bool {
	wanted := strings.ToLower(p.filter)
	return wanted == "" || slices.ContainsFunc(e.row, func(text string) bool { return strings.Contains(strings.ToLower(text), wanted) })
}

func (p *page) compare(a, b entry) int {
	if p.columns[p.column] == "AGE" {
		return b.object.GetCreationTimestamp().Compare(a.object.GetCreationTimestamp().Time)
	}
	return compareNatural(a.row[p.column], b.row[p.column])
}

// key returns the key of the selected object; "" without one.
func (p *page) key() string {
	if p.selected < len(p.shown) {
		return p.shown[p.selected]
	}
	return ""
}

// room is the number of lines for objects, or for a text.
func (p *page) room() int { return max(p.height-3, 1) }

// scroll keeps the selection and the text within the terminal.
func (p *page) scroll() {
	p.selected = max(min(p.selected, len(p.shown)-1), 0)
	p.top = min(max(p.top, p.selected-p.room()+1), p.selected)
	if p.text != nil {
		p.text.top = max(min(p.text.top, len(p.text.lines)-p.room()), 0)
	}
}
