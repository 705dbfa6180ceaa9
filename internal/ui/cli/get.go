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
	"github.com/muster-fleet/muster/internal/ui/explain"
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
	// noHeader leaves the header out. order is the flag --sort-by.
	noHeader bool
	order    string
	// exitCode is set to report members with problems by the exit code.
	exitCode bool
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
unless --namespace selects one. A name without a kind is looked for in all kinds. Any
command accepts the names of --output name, such as cluster/clusters/web.

The exit code is 5 if the list is not complete because you may not list the rest. For
example, a tenant of one workspace may not list MemberClusters.`,
		Example: `  # List all members
  muster get

  # List the Clusters of a workspace with a label, and the versions of their agents
  muster get clusters --namespace clusters --selector env=prod --output wide

  # Watch the Clusters of a workspace
  muster get clusters --namespace clusters --watch

  # List registration requests, and the command to approve each
  muster get requests

  # Print two members as JSON
  muster get clusters/web edge-1 --output json

  # Explain all Bundles
  muster get bundles --output name | xargs -n 1 muster explain

  # Sort by a column, or by a field
  muster get --sort-by version
  muster get --sort-by .metadata.creationTimestamp`,
		ValidArgsFunction: g.complete,
		RunE: func(command *cobra.Command, args []string) error {
			return g.run(command.Context(), args)
		},
	}
	command.Flags().StringVarP(&g.selector, "selector", "l", "", "List only objects with these labels, such as env=prod,region!=eu")
	command.Flags().BoolVarP(&g.live, "watch", "w", false,
		"Watch for changes until Ctrl-C: redraw the table on a terminal, else print a line for each change")
	command.Flags().BoolVar(&g.noHeader, "no-headers", false, "Print the table without its header")
	command.Flags().StringVar(&g.order, "sort-by", "", "Sort by a column, such as version, or by a JSONPath expression")
	command.Flags().BoolVar(&g.exitCode, "exit-code", false, "End with exit code 3 if an object has a problem")
	g.format.AddFlags(command)
	formats := append([]string{formatWide, formatColumns}, g.format.AllowedFormats()...)
	command.Flags().Lookup("output").Usage = "Output format: " + strings.Join(formats, ", ")
	complete(command, "output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	complete(command, "sort-by", cobra.FixedCompletions(sortableColumns(), cobra.ShellCompDirectiveNoFileComp))
	return h.acceptAllNamespaces(command)
}

func kindNames() []string { return namesOf(kinds) }

func (g *get) run(ctx context.Context, args []string) error {
	shown := kinds[0]
	if len(args) > 0 {
		if k, known := kindOf(args[0]); known {
			shown, args = k, args[1:]
		} else {
			return g.byName(ctx, args)
		}
	}
	if g.live {
		return g.watchTable(ctx, shown, args)
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
	return errors.Join(partly(found.refused), g.verdict(found.objects))
}

func (g *get) watchTable(ctx context.Context, k kind, names []string) error {
	switch format := *g.format.OutputFormat; {
	case format != "" && !g.wide():
		return usageError{fmt.Errorf("--watch prints a table: use --output wide, not %s", format)}
	case g.exitCode:
		return usageError{errors.New("--exit-code needs an end, and --watch has none: use muster wait")}
	}
	return g.watch(ctx, k, names)
}

// verdict returns an error if problems count and an object has one.
func (g *get) verdict(objects []client.Object) error {
	if g.exitCode && slices.ContainsFunc(objects, hasProblem) {
		return errNotWell
	}
	return nil
}

// hasProblem reports whether an object needs attention.
func hasProblem(o client.Object) bool {
	return slices.ContainsFunc(explain.Of(o), func(f explain.Finding) bool { return !f.Aside })
}

func (g *get) wide() bool { return *g.format.OutputFormat == formatWide }

func (g *get) printsTable() bool { return *g.format.OutputFormat == "" || g.wide() }

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
	sorted, err := g.sorter(k)
	if err != nil {
		return nil, err
	}
	if g.printsTable() {
		return func(f found) error {
			if len(f.objects) == 0 {
				_, err := fmt.Fprintln(g.ErrOut, view.NoneFound(k.name+g.where()))
				return err
			}
			sorted(f.objects)
			t := newTable(g.Out, k, g.wide(), g.styleOf(g.Out))
			if !g.noHeader {
				t.printHeader()
			}
			for _, o := range f.objects {
				t.print(view.Row(o, time.Now()))
			}
			return t.flush()
		}, nil
	}
	if columns, custom := strings.CutPrefix(*g.format.OutputFormat, formatColumns+"="); custom {
		printer, err := newColumns(columns, g.noHeader)
		return func(f found) error {
			sorted(f.objects)
			return printer.print(g.Out, f.objects)
		}, err
	}
	printer, err := g.format.ToPrinter()
	if err != nil {
		return nil, err
	}
	return func(f found) error {
		sorted(f.objects)
		return g.print(printer, f)
	}, nil
}

func (g *get) print(printer printers.ResourcePrinter, f found) error {
	if *g.format.OutputFormat == "name" {
		for _, o := range f.objects {
			fmt.Fprintln(g.Out, g.qualifiedName(o))
		}
		return nil
	}
	if f.one {
		return printer.PrintObj(f.objects[0], g.Out)
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
		_, rest, ofKind := cutKind(name)
		if name == o.GetName() || name == view.NameOf(o) || ofKind && (rest == o.GetName() || rest == view.NameOf(o)) {
			return name
		}
	}
	return ""
}
