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
	// maxCell bounds the bytes of a name, or of the sentence at the end of a line. No name is
	// longer.
	maxCell = 512
	// maxBetween bounds the other columns, since they widen every line.
	maxBetween = 64
)

// table prints aligned lines. Columns stay aligned after a flush.
type table struct {
	lines interface {
		io.Writer
		Flush() error
	}
	kind
	all bool
}

// newTable returns a table of a kind, with or without the wide columns.
func newTable(out io.Writer, k kind, all bool) *table {
	return &table{lines: printers.GetNewTabWriter(out), kind: k, all: all}
}

func (t *table) printHeader() { t.print(t.columns) }

// print prints a line from all columns. Members and tenants write parts of the text, so it
// escapes terminal sequences.
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

// cell formats a text for one cell on one line.
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

// flush prints the pending lines, and returns the first error.
func (t *table) flush() error { return t.lines.Flush() }
