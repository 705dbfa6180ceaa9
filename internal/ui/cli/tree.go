package cli

import (
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/muster-fleet/muster/internal/ui/view"
)

// tree is the command muster tree.
type tree struct {
	genericiooptions.IOStreams
	*access
}

func newTree(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	t := &tree{IOStreams: streams, access: h}
	looked := lookedFor{"muster tree", kindsNamed("members")}
	command := &cobra.Command{
		Use:   "tree [clusters|memberclusters] NAME...",
		Short: "Show the objects of a member as a tree",
		Long: `Show a member and its objects on the hub as a tree, each with its state. The objects are
the member namespace, the identity of the agent, the report, the heartbeat and the deliveries.
The tree also names missing objects, and objects that you may not read.`,
		Example: `  muster tree clusters/web
  muster tree edge-1`,
		Args: takes(1, 0, "the name of a member"),
		RunE: func(command *cobra.Command, args []string) error {
			members, c, err := h.subjects(command.Context(), looked, args)
			for _, o := range members {
				err = errors.Join(err, t.print(view.Tree(command.Context(), c, o)))
			}
			return err
		},
	}
	command.ValidArgsFunction = h.completeNames(looked)
	return h.acceptAllNamespaces(command)
}

// branches are the lines of a tree: to a child and past it, to the last child and past it.
type branches struct{ to, past, last, end string }

// print prints a tree, in line-drawing characters if the terminal supports them.
func (t *tree) print(root *view.Node) error {
	lines := branches{"├─ ", "│  ", "└─ ", "   "}
	if !speaksUTF8(os.Getenv) {
		lines = branches{"|- ", "|  ", "`- ", "   "}
	}
	p := &prose{out: t.Out}
	p.line("%s  %s", root.Name, root.State)
	p.below(root, "", lines)
	return p.err
}

func (p *prose) below(n *view.Node, before string, lines branches) {
	for i, child := range n.Below {
		to, past := lines.to, lines.past
		if i == len(n.Below)-1 {
			to, past = lines.last, lines.end
		}
		p.line("%s%s%s  %s", before, to, child.Name, child.State)
		p.below(child, before+past, lines)
	}
}

// speaksUTF8 reports whether the terminal supports more than ASCII, by the first set variable
// (POSIX, Environment Variables).
func speaksUTF8(variable func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := strings.ToUpper(variable(name)); value != "" {
			return strings.Contains(value, "UTF-8") || strings.Contains(value, "UTF8")
		}
	}
	return false
}
