package cli

import (
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
)

// press acts on a key.
func (p *page) press(key tea.KeyPressMsg) tea.Cmd {
	switch {
	case key.String() == "ctrl+c":
		return tea.Quit
	case p.typing:
		p.write(key)
	case p.text != nil:
		p.read(key.String())
	default:
		return p.choose(key.String())
	}
	p.scroll()
	return nil
}

// write edits the filter.
func (p *page) write(key tea.KeyPressMsg) {
	switch key.String() {
	case "enter":
		p.typing = false
	case "esc":
		p.typing, p.filter = false, ""
	case "backspace":
		_, last := utf8.DecodeLastRuneInString(p.filter)
		p.filter = p.filter[:len(p.filter)-last]
	default:
		p.filter += key.Key().Text
	}
	p.arrange()
}

// read moves in the explanation, or leaves it.
func (p *page) read(key string) {
	switch key {
	case "q", "esc", "enter", "left", "h":
		p.text = nil
	default:
		p.text.top += p.step(key, p.text.top, len(p.text.lines))
	}
}

// choose acts on the table.
func (p *page) choose(key string) tea.Cmd {
	switch key {
	case "q":
		return tea.Quit
	case "/":
		p.typing = true
	case "esc":
		p.filter = ""
		p.arrange()
	case "s":
		p.column = (p.column + 1) % len(p.columns)
		p.arrange()
	case "r":
		p.reverse = !p.reverse
		p.arrange()
	case "enter", "right", "l":
		e, found := p.entries[p.key()]
		if !found {
			return nil
		}
		p.text = &scrolled{of: e.object}
		return func() tea.Msg { return p.explain(e.object) }
	default:
		p.selected += p.step(key, p.selected, len(p.shown))
	}
	p.scroll()
	return nil
}

// step returns how many lines down a key moves a position.
func (p *page) step(key string, from, most int) int {
	switch key {
	case "up", "k":
		return -1
	case "down", "j":
		return 1
	case "pgup", "ctrl+b":
		return -p.room()
	case "pgdown", "ctrl+f", "space":
		return p.room()
	case "home", "g":
		return -from
	case "end", "G":
		return most - from
	}
	return 0
}
