package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/ui/view"
)

// eventLister is the command muster events.
type eventLister struct {
	genericiooptions.IOStreams
	*access
	most     int
	warnings bool
	live     bool
}

func newEvents(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	e := &eventLister{IOStreams: streams, access: h}
	looked := lookedFor{"muster events", explained()}
	command := &cobra.Command{
		Use:   "events [[" + strings.Join(kindNames(), "|") + "] NAME]",
		Short: "List the events of the fleet, or of one object",
		Long: `List the events of members, tokens, requests and deliveries, the newest last. With a name,
list the events of one object; for a member, together with its history, which the hub keeps.
An API server keeps events for an hour by default.`,
		Example: `  # List the events of the fleet
  muster events

  # List the warnings of one member
  muster events clusters/web --warnings

  # Print new events as they come
  muster events --watch`,
		Args:              takes(0, 2, "at most a kind and a name"),
		ValidArgsFunction: h.completeNames(lookedFor{"muster events", kinds[:1]}),
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) == 0 {
				return e.ofFleet(command.Context())
			}
			o, c, err := h.subject(command.Context(), looked, args)
			if err != nil {
				return err
			}
			return e.of(command.Context(), c, o)
		},
	}
	command.Flags().IntVar(&e.most, "limit", 100, "Number of events to print; 0 for all")
	command.Flags().BoolVar(&e.warnings, "warnings", false, "List only warnings")
	command.Flags().BoolVarP(&e.live, "watch", "w", false, "Then print each new event until interrupted")
	return h.acceptAllNamespaces(command)
}

// of prints the events of an object.
func (e *eventLister) of(ctx context.Context, c client.Client, o client.Object) error {
	namespace := cmp.Or(o.GetNamespace(), corev1.NamespaceDefault)
	events, err := e.list(ctx, c, client.InNamespace(namespace), client.MatchingFields{"involvedObject.uid": string(o.GetUID())})
	if err != nil {
		return fmt.Errorf("listing the events of %s: %w", e.title(o), err)
	}
	shown := view.WithHistory(o, events)
	if e.warnings {
		shown = slices.DeleteFunc(shown, func(event *corev1.Event) bool { return event.Type != corev1.EventTypeWarning })
	}
	if err := e.print(shown); err != nil || !e.live {
		return err
	}
	return e.follow(ctx, events, func(event *corev1.Event) bool { return event.InvolvedObject.UID == o.GetUID() },
		client.InNamespace(namespace), client.MatchingFields{"involvedObject.uid": string(o.GetUID())})
}

// ofFleet prints the events of all objects with a table.
func (e *eventLister) ofFleet(ctx context.Context) error {
	c, server, err := e.client()
	if err != nil {
		return err
	}
	var found []*corev1.Event
	for _, kind := range e.eventKinds() {
		events, err := e.list(ctx, c, client.InNamespace(*e.Namespace), client.MatchingFields{"involvedObject.kind": kind})
		if apierrors.IsForbidden(err) && *e.Namespace == "" {
			return fmt.Errorf("listing the events of all namespaces of %s: %w; use --namespace for one workspace", server, err)
		}
		if err != nil {
			return fmt.Errorf("listing the events of %s: %w", server, err)
		}
		found = append(found, events...)
	}
	if err := e.print(found); err != nil || !e.live {
		return err
	}
	shown := e.eventKinds()
	return e.follow(ctx, found, func(event *corev1.Event) bool { return slices.Contains(shown, event.InvolvedObject.Kind) },
		client.InNamespace(*e.Namespace))
}

// eventKinds returns the kinds of all tables.
func (h *access) eventKinds() (names []string) {
	for _, k := range kinds {
		for _, list := range k.lists("") {
			if gvk, err := h.gvkOf(list); err == nil && !slices.Contains(names, strings.TrimSuffix(gvk.Kind, "List")) {
				names = append(names, strings.TrimSuffix(gvk.Kind, "List"))
			}
		}
	}
	return names
}

func (e *eventLister) list(ctx context.Context, c client.Client, options ...client.ListOption) (events []*corev1.Event, err error) {
	err = view.Each(ctx, c, &corev1.EventList{}, func(o client.Object) {
		if event := o.(*corev1.Event); !e.warnings || event.Type == corev1.EventTypeWarning {
			events = append(events, event)
		}
	}, options...)
	return events, err
}

// print prints the newest events, in order of time.
func (e *eventLister) print(events []*corev1.Event) error {
	if len(events) == 0 {
		_, err := fmt.Fprintln(e.ErrOut, "No events found. An API server keeps events for an hour by default.")
		return err
	}
	slices.SortStableFunc(events, func(a, b *corev1.Event) int { return view.TimeOf(a).Compare(view.TimeOf(b)) })
	if e.most > 0 && len(events) > e.most {
		fmt.Fprintf(e.ErrOut, "These are the last %d of %d events: use --limit 0 for all.\n", e.most, len(events))
		events = events[len(events)-e.most:]
	}
	lines := printers.GetNewTabWriter(e.Out)
	write := func(cells ...string) error { return printers.WriteEscaped(lines, strings.Join(cells, "\t")+"\n") }
	if err := write("LAST-SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"); err != nil {
		return err
	}
	for _, event := range events {
		if err := write(append([]string{view.Since(view.TimeOf(event), time.Now())}, cellsOf(event)...)...); err != nil {
			return err
		}
	}
	return lines.Flush()
}

// cellsOf returns the columns of an event after its time.
func cellsOf(event *corev1.Event) []string {
	name := strings.TrimPrefix(event.InvolvedObject.Namespace+"/"+event.InvolvedObject.Name, "/")
	return []string{
		cell(event.Type, maxBetween), cell(event.Reason, maxBetween), cell(event.InvolvedObject.Kind+" "+name, maxCell),
		cell(event.Message, maxCell),
	}
}
