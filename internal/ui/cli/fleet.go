package cli

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/ui/explain"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// shownMembers bounds the named members of a cause.
const shownMembers = 5

// fleet prints the problems of all members, each cause once, the most frequent first. It reports
// whether there are any.
func (e *explainer) fleet(ctx context.Context) (problems bool, err error) {
	c, server, err := e.client()
	if err != nil {
		return false, err
	}
	count := 0
	troubles := view.Troubles{}
	var findings []explain.Finding
	_, refused, err := e.eachOfKind(ctx, c, server, kinds[0], func(o client.Object) {
		count++
		ofMember := explain.Of(o)
		if len(ofMember) == 0 || ofMember[0].Aside {
			return
		}
		findings = append(findings, ofMember...)
		troubles.Add(view.NameOf(o), ofMember[0])
	}, client.InNamespace(*e.Namespace))
	if err != nil {
		return false, err
	}
	if e.format == "json" {
		return len(findings) > 0, e.printJSON(findings, refused)
	}
	return len(findings) > 0, e.printFleet(count, troubles.Sorted(), refused)
}

func (e *explainer) printFleet(count int, troubles []*view.Trouble, unseen []error) error {
	sick := 0
	for _, t := range troubles {
		sick += len(t.Names)
	}
	p := newProse(e.Out)
	switch {
	case count == 0:
		p.line("%s", view.NoneFound("members"))
	case sick == 0:
		p.line("%s", view.Healthy(count))
	default:
		p.line("%d of %d members have problems.", sick, count)
	}
	for _, t := range troubles {
		named := strings.Join(t.Names[:min(shownMembers, len(t.Names))], ", ")
		if more := len(t.Names) - shownMembers; more > 0 {
			named += fmt.Sprintf(" and %d more", more)
		}
		p.line("")
		p.paragraph(2, "%s, %d %s: %s", t.First.Reason, len(t.Names), plural(t.First.Kind, len(t.Names)), named)
		if said := view.Why(false, t.First.Message); said != view.Nothing {
			p.paragraph(2, "  %s: %s", t.Names[0], said)
		}
		one := ""
		if len(t.Names) > 1 {
			one = t.Names[0]
		}
		p.advice(t.First, one)
	}
	if sick > 0 {
		p.line("")
		p.line("For more about one member: muster explain NAME")
	}
	for _, err := range unseen {
		p.line("")
		p.paragraph(2, "Not checked: %s", err)
	}
	return p.err
}

func plural(kind string, count int) string {
	if count == 1 {
		return kind
	}
	return kind + "s"
}
