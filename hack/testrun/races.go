package main

import (
	"fmt"
	"io"
	"strings"
)

// The race detector fails all running tests of a package. Its report is in the output of one of
// them, so it is printed again at the end of the run.
const (
	raceBegins = "WARNING: DATA RACE"
	raceEnds   = "=================="
	// raceFailure is the text of testing.T about a data race during a test.
	raceFailure = ": race detected during execution of test"
	// maxRaces, shownStacks and maxStackLines bound the reports at the end of a run. A report begins
	// with the stacks of the two accesses.
	maxRaces, shownStacks, maxStackLines = 3, 2, 24
)

// races collects the reports of the race detector, each with its package.
type races struct {
	reports []string
	// unfinished has the report that has begun in the output of a package.
	unfinished map[string]*strings.Builder
}

// take adds a line of a package's output.
func (r *races) take(name, line string) {
	report := r.unfinished[name]
	switch {
	case strings.Contains(line, raceBegins):
		if r.unfinished == nil {
			r.unfinished = map[string]*strings.Builder{}
		}
		r.unfinished[name] = &strings.Builder{}
	case report == nil:
	case strings.HasPrefix(line, raceEnds):
		r.end(name)
	default:
		report.WriteString(line)
	}
}

// end adds the report of a package, if one has begun.
func (r *races) end(name string) {
	if report := r.unfinished[name]; report != nil {
		r.reports = append(r.reports, "data race in "+name+":\n"+report.String())
		delete(r.unfinished, name)
	}
}

func (r *races) print(out io.Writer) {
	for _, report := range r.reports[:min(maxRaces, len(r.reports))] {
		stacks := strings.Split(strings.TrimSpace(report), "\n\n")
		for _, stack := range stacks[:min(shownStacks, len(stacks))] {
			lines := strings.Split(stack, "\n")
			fmt.Fprintln(out, strings.Join(lines[:min(maxStackLines, len(lines))], "\n"))
		}
	}
	if more := len(r.reports) - maxRaces; more > 0 {
		fmt.Fprintf(out, "and %d more data races\n", more)
	}
}

// raced reports whether a test failed for a data race, of its own or of another test.
func (one result) raced() bool { return strings.Contains(one.said, raceFailure) }
