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
	all      bool
}

func newGet(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	g := &get{IOStreams: streams, access: h}
	g.format = genericclioptions.NewPrintFlags("").WithTypeSetter(h.scheme)
	command := &cobra.Command{
		Use:   "get [" + strings.Join(kindNames(), "|") + "] [NAME...]",
		Short: "Show members, and what is delivered to them, in a table",
		Long: `get shows what there is and why what is not well is not. Members are Clusters and MemberClusters, in one table; objects of a workspace are named
WORKSPACE/NAME, those of all workspaces are shown unless --namespace says of which.

It ends with 2 if it shows a part only, because you may not list the rest: MemberClusters, for example, of which a tenant of one workspace has none.`,
		Example: `  # All members, however they were registered.
  muster get

  # The Clusters of a workspace with a label, with the versions of their agents.
  muster get clusters --namespace clusters --selector env=prod --output wide

  # The same, kept live.
  muster get clusters --namespace clusters --watch

  # Who waits for approval, and the command that gives it.
  muster get requests

  # Some members by name, for a script.
  muster get members clusters/web edge-1 --output json`,
		ValidArgsFunction: g.complete,
		RunE: func(command *cobra.Command, args []string) error {
			return g.run(command.Context(), args)
		},
	}
	command.Flags().StringVarP(&g.selector, "selector", "l", "", "show only what has these labels, such as env=prod,region!=eu")
	command.Flags().BoolVarP(&g.live, "watch", "w", false, "go on to show what changes, until Ctrl-C: on a terminal the table stays as it is now, else a line is added for each change")
	command.Flags().BoolVarP(&g.all, "all-namespaces", "A", false, "show what is in all workspaces, which it does anyhow; not with --namespace")
	g.format.AddFlags(command)
	command.Flags().Lookup("output").Usage = "one of wide, " + strings.Join(g.format.AllowedFormats(), ", ")
	complete(command, "output", cobra.FixedCompletions(append([]string{formatWide}, g.format.AllowedFormats()...), cobra.ShellCompDirectiveNoFileComp))
	return command
}

func kindNames() []string { return namesOf(kinds) }

func (g *get) run(ctx context.Context, args []string) error {
	shown := kinds[0]
	if len(args) > 0 {
		var known bool
		if shown, known = kindOf(args[0]); !known {
			return fmt.Errorf("%s is nothing that can be shown: say one of %s", args[0], strings.Join(kindNames(), ", "))
		}
		args = args[1:]
	}
	if g.all && *g.Namespace != "" {
		return errors.New("--all-namespaces does not go with --namespace, which says of which workspace")
	}
	if g.live {
		if format := *g.format.OutputFormat; format != "" && !g.wide() {
			return fmt.Errorf("--watch shows a table: it goes with --output wide, not with %s", format)
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

// found is what is shown.
type found struct {
	objects []client.Object
	// lists are the kinds that the user may list.
	lists []client.ObjectList
	// refused is why others are not shown.
	refused []error
	// one says that the user asked for just one object.
	one bool
}

// output is how it is shown.
func (g *get) output(k kind) (func(found) error, error) {
	if *g.format.OutputFormat == "" || g.wide() {
		return func(f found) error {
			if len(f.objects) == 0 {
				_, err := fmt.Fprintf(g.ErrOut, "There are no %s%s.\n", k.name, g.where())
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
	if *g.format.OutputFormat == "name" { // which knows no lists
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

// where says which objects were looked at.
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

// find reads the objects of a kind, page by page, and keeps those of these names; all if there are none. Of two kinds of objects one may be refused.
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
			refused = append(refused, fmt.Errorf("there is no %s%s among the %s%s", name, g.where(), k.name, suggestion(name, every)))
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

// options say which objects are asked for.
func (g *get) options() ([]client.ListOption, error) {
	selector, err := labels.Parse(g.selector)
	if err != nil {
		return nil, fmt.Errorf("--selector %s: %w", g.selector, err)
	}
	return []client.ListOption{client.InNamespace(*g.Namespace), client.MatchingLabelsSelector{Selector: selector}}, nil
}

// calledBy returns by which of these names an object is meant; "" by none.
func calledBy(o client.Object, names []string) string {
	for _, name := range names {
		if name == o.GetName() || name == view.NameOf(o) {
			return name
		}
	}
	return ""
}
