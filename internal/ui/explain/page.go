package explain

import (
	"fmt"
	"io"
	"strings"
)

// sections lists the parts of the page, in the order of the causes.
var sections = []struct {
	title  string
	causes []cause
}{
	{"Members", recordCauses},
	{"Clusters that the hub registers", importCauses},
	{"Requests to register", requestCauses},
	{"Registration tokens", tokenCauses},
	{"Agents", agentCauses},
	{"Bundles", deliveryCauses},
	{"Placements", placementCauses},
	{"Staged update runs", runCauses},
	{"What an agent says of itself", stateCauses},
}

// WritePage writes docs/troubleshooting.md: all causes, by subject.
func WritePage(w io.Writer) error {
	var page strings.Builder
	page.WriteString(`<!-- Written by make generate from internal/ui/explain. Do not edit. -->
# What is wrong, and what to do

    muster explain                 the whole fleet, each cause once
    muster explain clusters/web    one member, request, token, Bundle or placement

reports this about the objects of the fleet. This page lists all causes, in the order of the checks: an early one often
causes the later ones. Conditions, and the states of requests, have a reason: ` +
		"`kubectl get -o yaml`" + ` shows it, with a message that names the object. NAMESPACE and NAME stand for those of the object.
`)
	for _, s := range sections {
		fmt.Fprintf(&page, "\n## %s\n", s.title)
		for _, c := range s.causes {
			c.write(&page)
		}
	}
	_, err := io.WriteString(w, page.String())
	return err
}

func (c cause) write(page *strings.Builder) {
	fmt.Fprintf(page, "\n### %s\n\n%s %s\n", strings.Join(c.reasons, ", "), c.means, c.remedy)
	fmt.Fprintf(page, "\nSaid by: %s.\n", strings.Join(c.kinds, ", "))
	for _, side := range []struct {
		where    string
		commands []string
	}{{"On the hub", c.onHub}, {"On the member", c.onMember}} {
		if len(side.commands) > 0 {
			fmt.Fprintf(page, "\n%s:\n\n    %s\n", side.where, strings.Join(side.commands, "\n    "))
		}
	}
}
