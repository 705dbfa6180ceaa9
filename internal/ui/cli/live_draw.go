package cli

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/muster-fleet/muster/internal/ui/view"
)

// View implements tea.Model.
func (p *page) View() tea.View {
	v := tea.NewView(p.draw(time.Now()))
	v.AltScreen, v.WindowTitle = true, "muster: "+p.name
	return v
}

// draw returns the content of the terminal.
func (p *page) draw(now time.Time) string {
	var lines []string
	if p.text != nil {
		lines = append([]string{p.cut("Explanation of " + view.NameOf(p.text.of)), ""}, p.visibleText()...)
	} else {
		lines = p.drawTable(now)
	}
	for len(lines) < p.height-1 {
		lines = append(lines, "")
	}
	return strings.Join(append(lines[:p.height-1], p.cut(printers.EscapeTerminal(p.foot(now)))), "\n")
}

// foot describes the shown objects and the active keys.
func (p *page) foot(now time.Time) string {
	switch {
	case p.typing:
		return "/" + p.filter + "▏"
	case p.text != nil:
		return "q back · j k move"
	case p.problem != nil && now.Sub(p.since) < problemLasts:
		return fmt.Sprintf("Not live for %s: %s", view.Since(p.since, now), p.problem)
	}
	direction := "up"
	if p.reverse {
		direction = "down"
	}
	text := fmt.Sprintf("%d of %d %s by %s %s", len(p.shown), len(p.entries), p.name, strings.ToLower(p.columns[p.column]), direction)
	if p.filter != "" {
		text += fmt.Sprintf(", with %q", p.filter)
	}
	return text + " · enter explain · / filter · s sort · r reverse · q leave"
}

// drawTable draws the header and the visible lines. A line of the longest texts keeps the columns
// in place while the user scrolls; it is not shown.
func (p *page) drawTable(now time.Time) []string {
	const mark, noMark = "› ", "  "
	var text bytes.Buffer
	look := p.style
	look.width = max(p.width-len(noMark), narrowest)
	t := newTable(&text, p.kind, false, look)
	t.printHeader()
	t.print(p.sizes)
	visible := p.shown[min(p.top, len(p.shown)):min(p.top+p.room(), len(p.shown))]
	for _, key := range visible {
		t.print(view.Row(p.entries[key].object, now))
	}
	_ = t.flush() // a buffer does not fail
	drawn := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	lines := []string{noMark + drawn[0]}
	for i, line := range drawn[2:] {
		if p.top+i == p.selected {
			lines = append(lines, mark+line)
		} else {
			lines = append(lines, noMark+line)
		}
	}
	if len(visible) == 0 {
		lines = append(lines, noMark+view.NoneFound(p.name))
	}
	return lines
}

// visibleText returns the visible lines of the explanation.
func (p *page) visibleText() (lines []string) {
	if p.text.lines == nil {
		return []string{"Loading ..."}
	}
	for _, line := range p.text.lines[p.text.top:min(p.text.top+p.room(), len(p.text.lines))] {
		lines = append(lines, p.cut(line))
	}
	return lines
}
