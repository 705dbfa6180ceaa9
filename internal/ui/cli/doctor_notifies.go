package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// notifies checks whether the receivers of notifications take them, by the Events of the hub.
func (c *checked) notifies() check {
	return check{"receivers", false, func(ctx context.Context) (string, error) {
		var events []*corev1.Event
		err := view.Each(ctx, c, &corev1.EventList{}, func(o client.Object) { events = append(events, o.(*corev1.Event)) },
			client.InNamespace(naming.SystemNamespace), client.MatchingFields{"involvedObject.name": naming.HubConfigMap})
		if err != nil {
			return "", notAsked{fmt.Errorf("listing the events of the hub's settings: %w", err)}
		}
		if failing := failingReceivers(events); len(failing) > 0 {
			return "", errors.New(strings.Join(failing, "; "))
		}
		return "none fails to take notifications", nil
	}}
}

// failingReceivers returns the last Event of each receiver of notifications that still fails.
func failingReceivers(events []*corev1.Event) (failing []string) {
	events = slices.SortedFunc(slices.Values(events), func(a, b *corev1.Event) int { return view.TimeOf(a).Compare(view.TimeOf(b)) })
	last := map[string]*corev1.Event{}
	for _, event := range events {
		if event.Reason == reasons.NotificationsFail || event.Reason == reasons.NotificationsSent {
			// "notifications to NAME fail" and "notifications to NAME are sent again"
			if words := strings.Fields(event.Message); len(words) > 2 {
				last[words[2]] = event
			}
		}
	}
	for _, event := range last {
		if event.Reason == reasons.NotificationsFail {
			failing = append(failing, event.Message)
		}
	}
	slices.Sort(failing)
	return failing
}
