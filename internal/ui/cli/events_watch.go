package cli

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/ui/view"
)

// follow prints each new event, and each repetition, until the context ends. Its lines have the
// time instead of an age, and columns of fixed width.
func (e *eventLister) follow(ctx context.Context, printed []*corev1.Event, wanted func(*corev1.Event) bool,
	options ...client.ListOption) error {
	hub, _, err := e.client()
	if err != nil {
		return err
	}
	seen := map[types.UID]string{}
	for _, event := range printed {
		seen[event.UID] = event.ResourceVersion
	}
	changes := make(chan change)
	if err := e.followAll(ctx, hub, &corev1.EventList{}, options, changes); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case c := <-changes:
			if c.err != nil {
				fmt.Fprintf(e.ErrOut, "Not live: %s\n", c.err)
				continue
			}
			event := c.object.(*corev1.Event)
			if c.gone || !wanted(event) || seen[event.UID] == event.ResourceVersion || e.warnings && event.Type != corev1.EventTypeWarning {
				continue
			}
			seen[event.UID] = event.ResourceVersion
			cells := cellsOf(event)
			at := view.TimeOf(event).Local().Format(time.TimeOnly)
			line := fmt.Sprintf("%s  %-7s  %-24s  %-40s  %s\n", at, cells[0], cells[1], cells[2], cells[3])
			if err := printers.WriteEscaped(e.Out, line); err != nil {
				return err
			}
		}
	}
}
