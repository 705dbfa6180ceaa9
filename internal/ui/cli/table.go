package cli

import (
	"io"
	"slices"
	"strings"
	"unicode"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/ui/view"
)

const (
	// maxCell is how many bytes of a name, or of a sentence at the end of a line, a table shows: more than names have.
	maxCell = 512
	// maxBetween is how many those columns show that make all lines as wide.
	maxBetween = 64
)

// table prints lines whose columns stand below each other, also those that come after a flush.
type table struct {
	lines interface {
		io.Writer
		Flush() error
	}
	kind
	all bool
}

// newTable is a table of a kind, with all of its columns or without those that are wide.
func newTable(out io.Writer, k kind, all bool) *table {
	return &table{lines: printers.GetNewTabWriter(out), kind: k, all: all}
}

func (t *table) printHeader() { t.print(t.columns) }

// print prints a line, of which all columns are given. Members and tenants write some of it, which may not command a terminal.
func (t *table) print(columns []string) {
	var line []string
	for i, column := range columns {
		most := maxBetween
		if i == 0 || i == len(columns)-1 {
			most = maxCell
		}
		if t.all || !slices.Contains(t.wide, t.columns[i]) {
			line = append(line, cell(column, most))
		}
	}
	text := strings.Join(line, "\t") + "\n"
	_ = printers.WriteEscaped(t.lines, text) // flush returns the error
}

// cell is a text in one cell of one line, however long it is and whatever else it has.
func cell(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, text)
	return view.Or(kube.Clip(strings.Join(strings.Fields(text), " "), most))
}

// flush prints what was not printed yet, and returns what went wrong.
func (t *table) flush() error { return t.lines.Flush() }
