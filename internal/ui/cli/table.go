package cli

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

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
	// between is the number of spaces between columns.
	between = 3
	// sentence is the least width of the last column on a terminal.
	sentence = 16
)

// expendable are the columns dropped on a narrow terminal, in this order.
var expendable = []string{"KIND", "AGE", "VERSION", "LAST-USED", "CLIENT-ID", "BUNDLES", "AGE"}

// table prints aligned lines. Columns stay aligned after a flush.
type table struct {
	kind
	style
	out io.Writer
	// aligned receives the lines, and writes them to text when it is flushed.
	aligned interface {
		io.Writer
		Flush() error
	}
	text bytes.Buffer
	// hidden are the columns left out.
	hidden []string
	// rows are the lines since the last flush.
	rows [][]string
}

// newTable returns a table of a kind, with or without the wide columns.
func newTable(out io.Writer, k kind, all bool, s style) *table {
	t := &table{out: out, kind: k, style: s}
	t.aligned = printers.GetNewTabWriter(&t.text)
	if !all {
		t.hidden = slices.Clone(k.wide)
	}
	return t
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
		text := cell(column, most)
		switch {
		case t.columns[i] != "STATE":
		case column == t.columns[i]:
			text = t.headerCell(text)
		default:
			text = t.stateCell(text)
		}
		line = append(line, text)
	}
	t.rows = append(t.rows, line)
}

// fit hides columns until the names fit on the terminal, with some of the sentence.
func (t *table) fit() {
	hidden := func(name string) bool { return slices.Contains(t.hidden, name) }
	width := func() (sum int) {
		for i, name := range t.columns[:len(t.columns)-1] {
			widest := 0
			for _, row := range t.rows {
				widest = max(widest, utf8.RuneCountInString(row[i]))
			}
			if !hidden(name) {
				sum += widest + between
			}
		}
		return sum
	}
	for _, name := range expendable {
		if t.width == 0 || width()+sentence <= t.width {
			return
		}
		t.hidden = append(t.hidden, name)
	}
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
func (t *table) flush() error {
	t.fit()
	for _, row := range t.rows {
		var shown []string
		for i, name := range t.columns {
			if !slices.Contains(t.hidden, name) {
				shown = append(shown, row[i])
			}
		}
		if err := printers.WriteEscaped(t.aligned, strings.Join(shown, "\t")+"\n"); err != nil {
			return err
		}
	}
	t.rows = nil
	if err := t.aligned.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(t.text.String()) {
		if _, err := io.WriteString(t.out, t.paint(strings.TrimSuffix(line, "\n"))+"\n"); err != nil {
			return err
		}
	}
	t.text.Reset()
	return nil
}
