// Package ledger compares the requests of one join to the API server of the hub with a table. The
// tables beside it are the bounds; a test of internal/hub/test measures them on a control plane.
//
// Its invariant: a table only shrinks. Compare names each longer line, and Shrink never raises one.
package ledger

import (
	"bufio"
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Line is a kind of request.
type Line struct {
	// Who sends the request: hub, token, agent, identity or importer.
	Who, Verb string
	// Resource is the plural name, with the subresource after a slash.
	Resource string
	// Code is the status code of a refusal; 0 for a success.
	Code int
}

func (l Line) String() string {
	text := l.Who + " " + l.Verb + " " + l.Resource
	if l.Code != 0 {
		text += " " + strconv.Itoa(l.Code)
	}
	return text
}

// Entry is the bound of a line.
type Entry struct {
	Count int
	// Reason is set if the number differs from join to join.
	Reason string
}

// Table holds the entries by line.
type Table map[Line]Entry

// Fewest returns the smallest number of each kind of request in several joins. A retry or a second
// write because of the timing of one join therefore adds no line.
func Fewest(joins ...map[Line]int) map[Line]int {
	fewest := maps.Clone(joins[0])
	for _, join := range joins[1:] {
		for line, count := range fewest {
			fewest[line] = min(count, join[line])
		}
	}
	maps.DeleteFunc(fewest, func(_ Line, count int) bool { return count == 0 })
	return fewest
}

// Compare returns a sentence for each line above its bound, and one for each line below it. Lines
// with a reason may shrink without a sentence.
func (t Table) Compare(measured map[Line]int) (grown, shrunk []string) {
	for _, line := range sorted(measured, t) {
		bound, count := t[line], measured[line]
		switch {
		case count > bound.Count:
			grown = append(grown, fmt.Sprintf("%s: %d, before %d", line, count, bound.Count))
		case count < bound.Count && bound.Reason == "":
			shrunk = append(shrunk, fmt.Sprintf("%s: %d, before %d", line, count, bound.Count))
		}
	}
	return grown, shrunk
}

// Shrink returns the table with smaller numbers where fewer requests were measured. It keeps lines
// with a reason.
func (t Table) Shrink(measured map[Line]int) Table {
	smaller := Table{}
	for line, entry := range t {
		if entry.Reason == "" {
			entry.Count = min(entry.Count, measured[line])
		}
		if entry.Count > 0 {
			smaller[line] = entry
		}
	}
	return smaller
}

// Of returns a table with the measured numbers.
func Of(measured map[Line]int) Table {
	t := Table{}
	for line, count := range measured {
		t[line] = Entry{Count: count}
	}
	return t
}

// writes are the verbs of changes.
var writes = []string{"create", "update", "patch", "delete", "deletecollection"}

// Sum returns the bounds of the writes and of the other requests of a user, each as a sum, without
// retried requests.
func (t Table) Sum(who string) (written, read int) {
	for line, entry := range t {
		switch {
		case line.Who != who, line.Code == http.StatusConflict, line.Code == http.StatusForbidden:
		case slices.Contains(writes, line.Verb):
			written += entry.Count
		default:
			read += entry.Count
		}
	}
	return written, read
}

// Text returns the table as the text of a file: a sum for each user, then its lines.
func (t Table) Text() string {
	var text strings.Builder
	who := ""
	for _, line := range sorted(nil, t) {
		if line.Who != who {
			who = line.Who
			written, read := t.Sum(who)
			fmt.Fprintf(&text, "# %s: %d writes, %d other requests\n", who, written, read)
		}
		entry := t[line]
		fmt.Fprintf(&text, "%3d %s", entry.Count, line)
		if entry.Reason != "" {
			fmt.Fprintf(&text, " # at most: %s", entry.Reason)
		}
		text.WriteByte('\n')
	}
	return text.String()
}

// Parse reads the text of a file.
func Parse(text string) (Table, error) {
	t := Table{}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		request, reason, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(request)
		if len(words) == 0 {
			continue
		}
		if len(words) < 4 || len(words) > 5 {
			return nil, fmt.Errorf("the line %q is not a number, a user, a verb, a resource and a code", lines.Text())
		}
		count, err := strconv.Atoi(words[0])
		line := Line{Who: words[1], Verb: words[2], Resource: words[3]}
		if err == nil && len(words) == 5 {
			line.Code, err = strconv.Atoi(words[4])
		}
		if err != nil {
			return nil, fmt.Errorf("reading the line %q: %w", lines.Text(), err)
		}
		t[line] = Entry{Count: count, Reason: strings.TrimPrefix(strings.TrimSpace(reason), "at most: ")}
	}
	return t, nil
}

// sorted returns the lines of both, by user, writes first.
func sorted(measured map[Line]int, t Table) []Line {
	lines := map[Line]bool{}
	for line := range measured {
		lines[line] = true
	}
	for line := range t {
		lines[line] = true
	}
	return slices.SortedFunc(maps.Keys(lines), func(a, b Line) int {
		rank := func(l Line) int {
			if slices.Contains(writes, l.Verb) {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.Who, b.Who), cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Resource, b.Resource),
			cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Code, b.Code))
	})
}
