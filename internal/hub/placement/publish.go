package placement

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/hub/runtime/decisions"
)

// publish shows the picked members as PlacementDecisions. A placement with a problem has decided
// nothing, and what it has shown stays.
func (c *Controller) publish(ctx context.Context, s genericPlacement, d decision) (time.Duration, error) {
	if d.problem != (condition{}) {
		return 0, nil
	}
	shown := decisions.Decision{Owner: s.Object, Kind: placement.GroupVersion.WithKind(s.kind), Prefix: "crp",
		Reason: "picked by " + s.kind + " " + s.key.Name}
	if s.kind == kindRP {
		shown.Prefix = "rp"
	}
	for _, picked := range d.result.Picked() {
		if picked.Member != nil && !picked.Member.Leaving {
			shown.Members = append(shown.Members, picked.Name)
		}
	}
	return c.Decisions.Publish(ctx, shown)
}

// onDecision enqueues the placement of a PlacementDecision that another client has changed.
func (c *Controller) onDecision(_ context.Context, _, owner client.Object, q controller.Queue) {
	c.enqueueSoon(q, client.ObjectKeyFromObject(owner))
}
