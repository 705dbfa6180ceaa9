package main

import (
	"bytes"
	"fmt"
	"strings"
)

const head = `# Promises

<!-- page not run: its commands take hours -->

Each promise of the README and of these pages, what shows it, and the last result. ` + "`make proof`" + ` runs the tests of this
page in less than an hour, and writes it anew. Figures come from a machine with two cores, and their pages describe the
conditions. A target that is missed says so.

`

// page returns docs/promises.md.
func (b *book) page() []byte {
	var text bytes.Buffer
	text.WriteString(head)
	for i, area := range b.areas {
		if i > 0 {
			text.WriteString("\n")
		}
		fmt.Fprintf(&text, "## %s\n\n| promise | shown by | last result |\n| --- | --- | --- |\n", area.Area)
		for _, p := range area.Promises {
			fmt.Fprintf(&text, "| %s | %s | %s |\n", p.Promise, p.shownBy(), b.lastResult(p))
		}
	}
	return text.Bytes()
}

func (p promise) shownBy() string {
	var texts []string
	for _, test := range p.Tests {
		texts = append(texts, "`"+test+"`")
	}
	if p.Command != "" {
		texts = append(texts, "`"+p.Command+"`")
	}
	return strings.Join(texts, ", ")
}

// lastResult returns the figure, and the oldest result of the tests.
func (b *book) lastResult(p promise) string {
	var texts []string
	if p.Figure != "" {
		texts = append(texts, fmt.Sprintf("%s ([%s](%s))", p.Figure, p.Date, p.Page))
	}
	if len(p.Tests) > 0 {
		texts = append(texts, b.outcome(p.Tests))
	}
	if p.Figure == "" && p.Page != "" {
		texts = append(texts, fmt.Sprintf("[more](%s)", p.Page))
	}
	return strings.Join(texts, "; ")
}

// outcome returns the outcome of some tests: the first failure, else the oldest result.
func (b *book) outcome(tests []string) string {
	oldest := result{}
	for _, test := range tests {
		r, tried := b.results[test]
		switch {
		case !tried:
			return "not tried yet"
		case r.Outcome != passed:
			return fmt.Sprintf("`%s`: %s on %s at %s", test, r.Outcome, r.Date, r.Commit)
		case oldest.Date == "" || r.Date < oldest.Date:
			oldest = r
		}
	}
	return fmt.Sprintf("passed on %s at %s", oldest.Date, oldest.Commit)
}
