package cli

import (
	"io"
	"slices"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"
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
		if t.all || !slices.Contains(t.wide, t.columns[i]) {
			line = append(line, column)
		}
	}
	text := strings.Join(line, "\t") + "\n"
	_ = printers.WriteEscaped(t.lines, text) // flush returns the error
}

// flush prints what was not printed yet, and returns what went wrong.
func (t *table) flush() error { return t.lines.Flush() }
