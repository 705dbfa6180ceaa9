package work

import (
	"context"
	"slices"
	"strings"

	"github.com/muster-fleet/muster/internal/deploy/cause"
)

// follow adds the causes to the unready applied objects, and requeues the Work for the next look.
func (c *Controller) follow(ctx context.Context, p *pass) {
	if p.strategy.reports {
		return // no condition reports whether an object is available
	}
	round := c.tracker.looksOf(p.work.Name).Begin(c.Clock.Now())
	for _, m := range p.manifests {
		status := &p.manifestStatus[m.ordinal]
		is := status.summary
		if status.outcome.failed() || status.outcome.ran.Ended != "" || is.uid == "" || is.readiness.OK() {
			continue
		}
		object := cause.Object{GroupVersionResource: m.resource, NamespacedName: m.key.NamespacedName, UID: is.uid}
		status.causes = round.Of(ctx, c.objects, object, is.readiness.Message)
	}
	p.requeueAt(round.End())
}

// unready describes an unready object, with its causes.
func (s manifestStatus) unready() string {
	return strings.TrimPrefix(strings.Join(slices.Concat([]string{s.summary.readiness.Message}, s.causes), "; "), "; ")
}
