package dashboard

import (
	"html/template"
	"maps"
	"slices"
)

// count is the number of objects in a state, with a link to only these.
type count struct {
	State  string
	Count  int
	Link   template.URL
	Chosen bool
}

// counts returns the counts of some entries by state.
func (q query) counts(matching []*entry) (counts []count) {
	states := map[string]int{}
	for _, e := range matching {
		states[e.state]++
	}
	q.Page = 1
	for _, state := range slices.Sorted(maps.Keys(states)) {
		only := q
		if only.State = state; q.State == state {
			only.State = "" // a second click shows all again
		}
		counts = append(counts, count{state, states[state], only.Link(), q.State == state})
	}
	return counts
}

// choice is a value of a filter, and the number of members with it.
type choice struct {
	Value string
	Count int
}

// filter is a list of values to choose from. Name is its parameter in the address.
type filter struct {
	Label, Name, Chosen string
	Choices             []choice
}

// filtersOf returns the filters of the members, as far as their values differ.
func (q *query) filtersOf(members []*entry) (filters []filter) {
	for _, f := range []struct {
		filter
		value func(*entry) string
	}{
		{filter{"Workspace", "namespace", q.Namespace, nil}, func(e *entry) string { return e.namespace }},
		{filter{"Version", "version", q.Version, nil}, func(e *entry) string { return e.version }},
		{filter{"Kind", "kind", q.Kind, nil}, func(e *entry) string { return e.facts.kind }},
		{filter{"Provider", "provider", q.Provider, nil}, func(e *entry) string { return e.facts.provider }},
	} {
		sums := map[string]int{}
		for _, e := range members {
			sums[f.value(e)]++
		}
		delete(sums, "")
		if f.Chosen != "" && sums[f.Chosen] == 0 {
			sums[f.Chosen] = 0 // the form keeps a value without members
		}
		for _, value := range slices.SortedFunc(maps.Keys(sums), compareVersions) {
			f.Choices = append(f.Choices, choice{value, sums[value]})
		}
		if len(f.Choices) > 1 || f.Chosen != "" {
			filters = append(filters, f.filter)
		}
	}
	return filters
}

// chip is an active filter. Link shows the members without it.
type chip struct {
	Text string
	Link template.URL
}

// Chips returns the active filters.
func (q query) Chips() (chips []chip) {
	q.Page = 1
	for _, c := range []struct {
		label string
		field *string
	}{
		{"name", &q.Name}, {"labels", &q.Selector}, {"workspace", &q.Namespace}, {"state", &q.State}, {"version", &q.Version},
		{"kind", &q.Kind}, {"provider", &q.Provider},
	} {
		value := *c.field
		if value == "" {
			continue
		}
		*c.field = ""
		chips = append(chips, chip{c.label + ": " + value, q.Link()})
		*c.field = value
	}
	return chips
}

// workspacesOf returns the workspaces of some entries.
func workspacesOf(all []*entry) []string {
	workspaces := map[string]bool{}
	for _, e := range all {
		if e.namespace != "" {
			workspaces[e.namespace] = true
		}
	}
	return slices.Sorted(maps.Keys(workspaces))
}
