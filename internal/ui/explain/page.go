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
	{"Members", memberCauses},
	{"Clusters registered by kubeconfig", importCauses},
	{"Registration requests", requestCauses},
	{"Registration tokens", tokenCauses},
	{"Agents", agentCauses},
	{"Bundles", deliveryCauses},
	{"GitRepos and HelmOps", repositoryCauses},
	{"Placements", placementCauses},
	{"Staged update runs", runCauses},
	{"Agent states", stateCauses},
}

// WritePage writes docs/troubleshooting.md: all causes, by subject.
func WritePage(w io.Writer) error {
	var page strings.Builder
	page.WriteString(`<!-- Written by make generate from internal/ui/explain. Do not edit. -->
# Troubleshooting

` + "`muster explain`" + ` prints the causes below for the objects of the fleet:

    muster explain                 the whole fleet, each cause once
    muster explain clusters/web    one member, request, token, Bundle or placement

The page lists the causes in the order of the checks of ` + "`muster explain`" + `: an early cause often leads to the later
ones. Each condition, and each state of a request, has a reason and a message. ` + "`kubectl get -o yaml`" + ` shows both.

In the commands, NAMESPACE and NAME are the namespace and the name of the object. OBJECT is NAMESPACE/NAME, or NAME for
an object without a namespace. TOKEN and SECRET are names of your choice.
Replace ` + "`<namespace>` and `<pod>`" + ` with the namespace and name of the Pod in the message.
`)
	for _, s := range sections {
		fmt.Fprintf(&page, "\n## %s\n", s.title)
		for _, c := range s.causes {
			c.write(&page)
		}
	}
	writeWords(&page)
	_, err := io.WriteString(w, page.String())
	return err
}

func (c cause) write(page *strings.Builder) {
	fmt.Fprintf(page, "\n### %s\n\n%s %s\n", strings.Join(c.reasons, ", "), c.means, c.remedy)
	fmt.Fprintf(page, "\nReported by: %s.\n", strings.Join(c.kinds, ", "))
	for _, side := range []struct {
		where    string
		commands []string
	}{{"On the hub", c.onHub}, {"On the member", c.onMember}} {
		if len(side.commands) > 0 {
			fmt.Fprintf(page, "\n%s:\n\n    %s\n", side.where, strings.Join(side.commands, "\n    "))
		}
	}
}
