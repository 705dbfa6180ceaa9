package work

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/delivery/protocol"
)

// passOn calls Seen for each event of the watch of Works, until ctx ends.
func (c *Controller) passOn(ctx context.Context) error {
	if c.Seen == nil {
		<-ctx.Done()
		return nil
	}
	works, err := c.works.GetInformer(ctx, &placement.Work{}, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	c.Seen(protocol.Event{Type: protocol.EventListing})
	defer c.Seen(protocol.Event{Type: protocol.EventEnded})
	put := func(obj any) {
		if work, is := obj.(metav1.Object); is {
			c.Seen(protocol.EventOf(protocol.EventPut, work))
		}
	}
	registered, err := works.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: put, UpdateFunc: func(_, obj any) { put(obj) }, DeleteFunc: func(obj any) {
			if missed, is := obj.(toolscache.DeletedFinalStateUnknown); is {
				obj = missed.Obj
			}
			if work, is := obj.(metav1.Object); is {
				c.Seen(protocol.EventOf(protocol.EventDeleted, work))
			}
		},
	})
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case <-registered.HasSyncedChecker().Done():
	}
	c.Seen(protocol.Event{Type: protocol.EventListed})
	<-ctx.Done()
	return nil
}
