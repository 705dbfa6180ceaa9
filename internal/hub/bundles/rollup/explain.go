package rollup

import (
	"fmt"
	"slices"
	"strings"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/kube"
)

// Explain returns one line about all unready parts of a summary: each state with its count and its
// named entries. Entries with the same message appear together, after their kind: NotReady(2)
// [Clusters a, b: text].
func Explain(kind string, summary fleet.BundleSummary) string {
	named := make([]Entry, len(summary.NonReadyResources))
	for i, r := range summary.NonReadyResources {
		named[i] = Entry{Name: r.Name, State: r.State, Message: r.Message}
	}
	return explain(kind, summary, named)
}

// ExplainAll returns the line of Explain, but counts all entries with the same message, not only
// the named ones.
func ExplainAll(kind string, entries []Entry) string {
	return explain(kind, Summarize(entries), entries)
}

func explain(kind string, summary fleet.BundleSummary, entries []Entry) string {
	var parts []string
	room := maxNamed
	for _, state := range severity {
		n := *count(&summary, state)
		if n == 0 || state == fleet.StateReady {
			continue
		}
		part := fmt.Sprintf("%s(%d)", state, n)
		groups := kube.GroupTexts(namedIn(state, entries))
		var texts []string
		for _, group := range groups[:min(len(groups), room)] {
			plural := ""
			if len(group.Names) > 1 {
				plural = "s"
			}
			texts = append(texts, kind+plural+" "+group.String())
		}
		room -= len(texts)
		if len(texts) > 0 {
			part += " [" + strings.Join(texts, "; ") + "]"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// namedIn returns the names and messages of the entries in a state, by name.
func namedIn(state fleet.BundleState, entries []Entry) (all []kube.Named) {
	for _, e := range entries {
		if delivery.Wire(e.State) == state {
			all = append(all, kube.Named{Name: e.Name, Text: delivery.Short(e.Message)})
		}
	}
	slices.SortStableFunc(all, func(a, b kube.Named) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// diverse returns the entries to name in a summary. If there are too many, the first entry of each
// state and message comes before further ones.
func diverse(bad []Entry) []Entry {
	if len(bad) <= maxNamed {
		return bad
	}
	type cause struct {
		state   fleet.BundleState
		message string
	}
	seen := map[cause]bool{}
	var first, further []Entry
	for _, e := range bad {
		if key := (cause{e.State, delivery.Short(e.Message)}); !seen[key] {
			seen[key], first = true, append(first, e)
		} else {
			further = append(further, e)
		}
	}
	named := append(first, further...)[:maxNamed]
	sortBySeverity(named)
	return named
}
