package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/muster-fleet/muster/internal/nearest"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// formatWide shows all columns.
const formatWide = "wide"

// get is the command muster get.
type get struct {
	genericiooptions.IOStreams
	*access
	format   *genericclioptions.PrintFlags
	selector string
	live     bool
}

func newGet(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	g := &get{IOStreams: streams, access: h}
	g.format = genericclioptions.NewPrintFlags("").WithTypeSetter(h.scheme)
	command := &cobra.Command{
		Use:   "get [" + strings.Join(kindNames(), "|") + "] [NAME...]",
		Short: "List members, Bundles, placements, tokens and requests",
		Long: `List members, Bundles, placements, registration tokens and registration requests, with
the cause of each problem. Members are Clusters and MemberClusters, in one table.

An object of a workspace has the name WORKSPACE/NAME. The list covers all workspaces
unless --namespace selects one.

The exit status is 2 if the list is not complete because you may not list the rest.
For example, a tenant of one workspace may not list MemberClusters.`,
		Example: `  # List all members
  muster get

  # List the Clusters of a workspace with a label, and the versions of their agents
  muster get clusters --namespace clusters --selector env=prod --output wide

  # Watch the Clusters of a workspace
  muster get clusters --namespace clusters --watch

  # List registration requests, and the command to approve each
  muster get requests

  # Print two members as JSON
  muster get members clusters/web edge-1 --output json`,
		ValidArgsFunction: g.complete,
		RunE: func(command *cobra.Command, args []string) error {
			return g.run(command.Context(), args)
		},
	}
	command.Flags().StringVarP(&g.selector, "selector", "l", "", "List only objects with these labels, such as env=prod,region!=eu")
	command.Flags().BoolVarP(&g.live, "watch", "w", false,
		"Watch for changes until Ctrl-C: redraw the table on a terminal, else print a line for each change")
	g.format.AddFlags(command)
	command.Flags().Lookup("output").Usage = "Output format: wide, " + strings.Join(g.format.AllowedFormats(), ", ")
	complete(command, "output",
		cobra.FixedCompletions(append([]string{formatWide}, g.format.AllowedFormats()...), cobra.ShellCompDirectiveNoFileComp))
	return h.acceptAllNamespaces(command)
}

func kindNames() []string { return namesOf(kinds) }

func (g *get) run(ctx context.Context, args []string) error {
	shown := kinds[0]
	if len(args) > 0 {
		var known bool
		if shown, known = kindOf(args[0]); !known {
			return fmt.Errorf("%s is not a kind of objects: use one of %s", args[0], strings.Join(kindNames(), ", "))
		}
		args = args[1:]
	}
	if g.live {
		if format := *g.format.OutputFormat; format != "" && !g.wide() {
			return fmt.Errorf("--watch prints a table: use --output wide, not %s", format)
		}
		return g.watch(ctx, shown, args)
	}
	output, err := g.output(shown)
	if err != nil {
		return err
	}
	found, err := g.find(ctx, shown, args)
	if err != nil {
		return err
	}
	if err := output(found); err != nil {
		return err
	}
	return partly(found.refused)
}

func (g *get) wide() bool { return *g.format.OutputFormat == formatWide }

// found holds the objects to show.
type found struct {
	objects []client.Object
	// lists are the kinds the user may list.
	lists []client.ObjectList
	// refused has the error of each kind the user may not list.
	refused []error
	// one reports that the user named exactly one object.
	one bool
}

// output returns the printer for the chosen format.
func (g *get) output(k kind) (func(found) error, error) {
	if *g.format.OutputFormat == "" || g.wide() {
		return func(f found) error {
			if len(f.objects) == 0 {
				_, err := fmt.Fprintln(g.ErrOut, view.NoneFound(k.name+g.where()))
				return err
			}
			t := newTable(g.Out, k, g.wide())
			t.printHeader()
			for _, o := range f.objects {
				t.print(view.Row(o, time.Now()))
			}
			return t.flush()
		}, nil
	}
	printer, err := g.format.ToPrinter()
	if err != nil {
		return nil, err
	}
	return func(f found) error { return g.print(printer, f) }, nil
}

func (g *get) print(printer printers.ResourcePrinter, f found) error {
	if f.one {
		return printer.PrintObj(f.objects[0], g.Out)
	}
	if *g.format.OutputFormat == "name" { // the name printer does not support lists
		for _, o := range f.objects {
			if err := printer.PrintObj(o, g.Out); err != nil {
				return err
			}
		}
		return nil
	}
	list := &metav1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}, Items: []runtime.RawExtension{}}
	for _, o := range f.objects {
		gvk, err := apiutil.GVKForObject(o, g.scheme)
		if err != nil {
			return err
		}
		o.GetObjectKind().SetGroupVersionKind(gvk)
		list.Items = append(list.Items, runtime.RawExtension{Object: o})
	}
	return printer.PrintObj(list, g.Out)
}

// where describes the namespace and the selector.
func (g *get) where() string {
	var words []string
	if *g.Namespace != "" {
		words = append(words, " in namespace "+*g.Namespace)
	}
	if g.selector != "" {
		words = append(words, " with labels "+g.selector)
	}
	return strings.Join(words, "")
}

// find reads the objects of a kind in pages, and selects those with the given names, or all. Of
// two kinds of objects, one may be forbidden.
func (g *get) find(ctx context.Context, k kind, names []string) (found, error) {
	options, err := g.options()
	if err != nil {
		return found{}, err
	}
	hub, server, err := g.client()
	if err != nil {
		return found{}, err
	}
	var f found
	var every []string
	meant := map[string]bool{}
	listed, refused, err := g.eachOfKind(ctx, hub, server, k, func(o client.Object) {
		every = append(every, view.NameOf(o))
		if called := calledBy(o, names); len(names) == 0 || called != "" {
			meant[called] = true
			f.objects = append(f.objects, o)
		}
	}, options...)
	if err != nil {
		return found{}, err
	}
	f.lists, f.refused = listed, refused
	for _, name := range names {
		if !meant[name] {
			refused = append(refused, fmt.Errorf("there is no %s%s among the %s%s", name, g.where(), k.name, nearest.Question(name, every)))
			return found{}, errors.Join(refused...)
		}
	}
	for _, err := range refused {
		fmt.Fprintf(g.ErrOut, "Not shown: %s\n", err)
	}
	f.one = len(names) == 1 && len(f.objects) == 1
	slices.SortStableFunc(f.objects, func(a, b client.Object) int { return strings.Compare(view.NameOf(a), view.NameOf(b)) })
	return f, nil
}

// options returns the namespace and the selector of the list.
func (g *get) options() ([]client.ListOption, error) {
	selector, err := labels.Parse(g.selector)
	if err != nil {
		return nil, fmt.Errorf("--selector %s: %w", g.selector, err)
	}
	return []client.ListOption{client.InNamespace(*g.Namespace), client.MatchingLabelsSelector{Selector: selector}}, nil
}

// calledBy returns the argument with the name of an object, or "".
func calledBy(o client.Object, names []string) string {
	for _, name := range names {
		if name == o.GetName() || name == view.NameOf(o) {
			return name
		}
	}
	return ""
}
