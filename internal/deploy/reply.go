package deploy

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/muster-fleet/muster/internal/delivery/protocol"
)

// reply sends a reply to the agent.
func (d *controllers) reply(a protocol.Reply) {
	d.replying.Lock()
	defer d.replying.Unlock()
	if err := a.Send(d.replies); err != nil {
		d.log.Info("Failed to reply to the agent", "reason", err.Error())
	}
}

// reportAlive reports progress of the process to the agent, until ctx ends. Each report takes the
// locks of all other work.
func (d *controllers) reportAlive(ctx context.Context) {
	ticker := time.NewTicker(protocol.AlivePeriod)
	defer ticker.Stop()
	for {
		d.mu.Lock()
		bundles := d.bundles
		d.mu.Unlock()
		if bundles != nil {
			bundles.CheckLock()
		}
		d.reply(protocol.Reply{Alive: true})
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// leaseFailing logs why the Lease cannot be taken, and reports a missing right.
func (d *controllers) leaseFailing(err error) {
	d.log.Info("Waiting to deploy", "reason", err.Error())
	if !apierrors.IsForbidden(err) {
		return
	}
	for _, kind := range []protocol.Kind{protocol.Bundles, protocol.Works, protocol.Agent} {
		d.reply(protocol.Reply{Kind: kind, Failing: err.Error()})
	}
}
