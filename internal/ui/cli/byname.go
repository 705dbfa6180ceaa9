package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/ui/view"
)

// byName shows the objects of some names, of any kind, in a table for each kind.
func (g *get) byName(ctx context.Context, names []string) error {
	if g.selector != "" {
		return usageError{errors.New("--selector and names exclude each other: use one of the two, or name a kind first")}
	}
	among := append(explained(), kindsNamed(kindApprovals)...)
	hub, server, err := g.client()
	if err != nil {
		return err
	}
	var tables []kind
	byTable := map[string][]client.Object{}
	var objects []client.Object
	for _, name := range names {
		o, err := g.lookUpQualified(ctx, hub, server, lookedFor{"muster get", among}, name)
		if err != nil {
			return err
		}
		k, _ := kindOf(g.kindOfObject(o))
		if isMembers(k.name) {
			k = kinds[0] // both kinds of members have one table
		}
		if byTable[k.name] == nil {
			tables = append(tables, k)
		}
		objects, byTable[k.name] = append(objects, o), append(byTable[k.name], o)
	}
	if g.live {
		if len(tables) > 1 {
			return usageError{fmt.Errorf("--watch shows one kind, and these are %s", strings.Join(namesOf(tables), " and "))}
		}
		return g.watchTable(ctx, tables[0], namesOfObjects(objects))
	}
	if !g.printsTable() {
		tables, byTable[kinds[0].name] = kinds[:1], objects
	}
	for i, k := range tables {
		if i > 0 {
			fmt.Fprintln(g.Out)
		}
		output, err := g.output(k)
		if err == nil {
			err = output(found{objects: byTable[k.name], one: len(objects) == 1})
		}
		if err != nil {
			return err
		}
	}
	return g.verdict(objects)
}

func namesOfObjects(objects []client.Object) (names []string) {
	for _, o := range objects {
		names = append(names, view.NameOf(o))
	}
	return names
}
