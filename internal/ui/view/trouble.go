package view

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/muster-fleet/muster/internal/ui/explain"
)

// Trouble is a problem of several objects.
type Trouble struct {
	// First is the finding of one of them.
	First explain.Finding
	// Names of the objects, with their namespaces.
	Names []string
}

// Troubles holds troubles by kind and reason.
type Troubles map[string]*Trouble

// Add adds the first finding of an object.
func (t Troubles) Add(name string, first explain.Finding) {
	key := first.Kind + " " + first.Reason
	if t[key] == nil {
		t[key] = &Trouble{First: first}
	}
	t[key].Names = append(t[key].Names, name)
}

// Sorted returns the troubles, the most frequent first.
func (t Troubles) Sorted() []*Trouble {
	return slices.SortedFunc(maps.Values(t), func(a, b *Trouble) int {
		return cmp.Or(len(b.Names)-len(a.Names), strings.Compare(a.First.Kind+a.First.Reason, b.First.Kind+b.First.Reason))
	})
}
