package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/ui/explain"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// gathered is how long changes are gathered for one drawing. The members of a large fleet arrive
// all at once.
const gathered = 100 * time.Millisecond

// changes are the changes of one moment.
type changes []change

// newWatch returns muster watch, the table of muster get as a page in the terminal.
func newWatch(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	g := &get{IOStreams: streams, access: h, format: genericclioptions.NewPrintFlags("").WithTypeSetter(h.scheme)}
	command := newGet(streams, h)
	command.Use = "watch [" + strings.Join(kindNames(), "|") + "] [NAME...]"
	command.Aliases = []string{"top"}
	command.Short = "Show the fleet live in the terminal"
	command.Long = `Show members, Bundles, placements, tokens or requests live in the terminal: sort, filter,
and explain an object with its problems.

  up, down, j, k     move to another line; page keys, g and G move further
  enter              explain the object; q or escape goes back
  /                  filter by a text in any column; escape ends the filter
  s, r               sort by the next column; reverse the order
  q                  leave

Without a terminal, the command prints a line for each change, as "muster get --watch".`
	command.Example = `  # Show all members
  muster watch

  # Show the Clusters of a workspace with a label
  muster watch clusters --namespace clusters --selector env=prod`
	command.ResetFlags()
	command.Flags().StringVarP(&g.selector, "selector", "l", "", "Show only objects with these labels, such as env=prod,region!=eu")
	command.Flags().StringVar(&g.order, "sort-by", "", "Sort by a column, such as version")
	complete(command, "sort-by", cobra.FixedCompletions(sortableColumns(), cobra.ShellCompDirectiveNoFileComp))
	command.RunE = func(command *cobra.Command, args []string) error { return g.browse(command.Context(), args) }
	return h.acceptAllNamespaces(command)
}

// browse runs the page until the user leaves it.
func (g *get) browse(ctx context.Context, args []string) error {
	k := kinds[0]
	if len(args) > 0 {
		if named, known := kindOf(args[0]); known {
			k, args = named, args[1:]
		}
	}
	order := slices.IndexFunc(k.columns, func(name string) bool { return strings.EqualFold(name, g.order) })
	if g.order != "" && order < 0 {
		return usageError{fmt.Errorf("--sort-by %s: %s have the columns %s", g.order, k.name, strings.ToLower(strings.Join(k.columns, ", ")))}
	}
	keyboard, out := terminalOf(g.In), terminalOf(g.Out)
	if keyboard == nil || out == nil {
		return g.watch(ctx, k, args)
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	changed, err := g.changes(ctx, k, args)
	if err != nil {
		return err
	}
	p := newPage(k, args, max(order, 0), g.styleOf(out))
	p.explain = func(o client.Object) tea.Msg { return explanation{o, g.explanation(ctx, o)} }
	program := tea.NewProgram(p, tea.WithContext(ctx), tea.WithInput(keyboard), tea.WithOutput(out))
	go gather(ctx, changed, func(batch changes) { program.Send(batch) })
	_, err = program.Run()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return nil
	}
	return err
}

// terminalOf returns the terminal of a stream; nil for another stream.
func terminalOf(stream any) *os.File {
	if file, ok := stream.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return file
	}
	return nil
}

// gather sends the changes of each moment together.
func gather(ctx context.Context, changed <-chan change, send func(changes)) {
	var batch changes
	for {
		var due <-chan time.Time
		if len(batch) > 0 {
			due = time.After(gathered)
		}
		for open := true; open; {
			select {
			case <-ctx.Done():
				return
			case c := <-changed:
				if batch = append(batch, c); due == nil {
					due = time.After(gathered)
				}
			case <-due:
				open = false
			}
		}
		send(batch)
		batch = nil
	}
}

// explanation returns the text of muster explain.
func (g *get) explanation(ctx context.Context, o client.Object) string {
	var text bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &text, ErrOut: &text}
	e := &explainer{IOStreams: streams, access: g.access, full: true}
	hub, _, err := g.client()
	if err == nil {
		related, unseen := view.Related(ctx, hub, o)
		err = e.print(o, explain.Of(append([]client.Object{o}, related...)...), unseen)
	}
	if err == nil {
		err = e.printRest(ctx, hub, o)
	}
	if err != nil {
		text.WriteString("\nError: " + err.Error() + "\n")
	}
	return text.String()
}
