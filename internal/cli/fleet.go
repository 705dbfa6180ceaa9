package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/explain"
)

// shownMembers is how many members are named for each cause.
const shownMembers = 5

// trouble is what several members have.
type trouble struct {
	first   explain.Finding
	members []string
}

// fleet says what keeps members from being ready, each cause once, what most have first.
func (e *explainer) fleet(ctx context.Context) error {
	c, server, err := e.client()
	if err != nil {
		return err
	}
	count := 0
	of := map[string]*trouble{}
	var all []explain.Finding
	_, refused, err := e.eachOfKind(ctx, c, server, kinds[0], func(o client.Object) {
		count++
		findings := explain.Of(o)
		if len(findings) == 0 || findings[0].Aside {
			return
		}
		first := findings[0]
		all = append(all, findings...)
		key := first.Kind + " " + first.Reason
		if of[key] == nil {
			of[key] = &trouble{first: first}
		}
		of[key].members = append(of[key].members, nameOf(o))
	}, client.InNamespace(*e.Namespace))
	if err != nil {
		return err
	}
	if e.format == "json" {
		return e.printJSON(all, refused)
	}
	return e.printFleet(count, of, refused)
}

func (e *explainer) printFleet(count int, of map[string]*trouble, unseen []error) error {
	troubles := make([]*trouble, 0, len(of))
	sick := 0
	for _, t := range of {
		troubles = append(troubles, t)
		sick += len(t.members)
	}
	slices.SortFunc(troubles, func(a, b *trouble) int {
		return cmp.Or(len(b.members)-len(a.members), strings.Compare(a.first.Kind+a.first.Reason, b.first.Kind+b.first.Reason))
	})
	p := &prose{out: e.Out}
	switch {
	case count == 0:
		p.line("There are no members.")
	case sick == 0:
		p.line("Nothing is wrong with the %d members.", count)
	default:
		p.line("Something is wrong with %d of %d members.", sick, count)
	}
	for _, t := range troubles {
		named := strings.Join(t.members[:min(shownMembers, len(t.members))], ", ")
		if more := len(t.members) - shownMembers; more > 0 {
			named += fmt.Sprintf(" and %d more", more)
		}
		p.line("")
		p.line("%s, %d %s: %s", t.first.Reason, len(t.members), plural(t.first.Kind, len(t.members)), named)
		if said := why(false, t.first.Message); said != nothing {
			p.line("  %s: %s", t.members[0], said)
		}
		one := ""
		if len(t.members) > 1 {
			one = t.members[0]
		}
		p.advice(t.first, one)
	}
	if sick > 0 {
		p.line("")
		p.line("muster explain NAME says more of one of them.")
	}
	for _, err := range unseen {
		p.line("")
		p.line("Not looked at: %s", err)
	}
	return p.err
}

func plural(kind string, count int) string {
	if count == 1 {
		return kind
	}
	return kind + "s"
}
