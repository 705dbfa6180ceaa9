package deploy

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/delivery/protocol"
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/deploy/bundle"
	"github.com/muster-fleet/muster/internal/deploy/release"
	"github.com/muster-fleet/muster/internal/deploy/render"
	"github.com/muster-fleet/muster/internal/deploy/work"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/retry"
)

// controllers are the controllers of the process, one for each kind visible to the member. The
// process ends once all are idle.
type controllers struct {
	config  *rest.Config
	cluster *release.Cluster
	hub     *hubclient.Member
	// member is the UID of the report, lost has its UIDs from before a restore of the hub.
	member string
	lost   []string
	log    logr.Logger
	lease  lease
	// attempts are shared by all runs of the Deployer.
	attempts *bundle.Attempts
	renderer *render.Renderer

	end     context.CancelFunc
	running sync.WaitGroup
	mu      sync.Mutex
	idle    map[protocol.Kind]bool
	// bundles is the running Deployer; nil if there is none.
	bundles *bundle.Deployer
	// replies is written under the lock replying.
	replies  *os.File
	replying sync.Mutex
	// unknown has the deliveries unknown to the hub; the lock is unknowing.
	unknown   map[protocol.Kind]unknown
	unknowing sync.Mutex
	// removing is closed when the member leaves and everything must be removed; left is the rest of
	// each kind.
	removing chan struct{}
	left     map[protocol.Kind]applied.Remaining
}

// handleOrder starts the missing controllers of an order.
func (d *controllers) handleOrder(ctx context.Context, order protocol.Order) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if order.Leave == clusterv1beta1.LeaveDelete && !d.removesAll() {
		for kind := range d.idle {
			d.idle[kind] = false
		}
		close(d.removing)
	}
	for _, kind := range known(order.Kinds) {
		if _, begun := d.idle[kind]; !begun && ctx.Err() == nil {
			d.idle[kind] = false
			d.running.Go(func() { d.runController(ctx, kind) })
		}
	}
	if d.removesAll() && len(d.idle) == 0 {
		d.finish()
	}
}

// runController runs the controller of one kind, and restarts it after each failure. The other kind
// continues.
func (d *controllers) runController(ctx context.Context, kind protocol.Kind) {
	for backoff := retry.Unreachable(); ctx.Err() == nil; {
		err := d.runOnce(ctx, kind)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			d.log.Info("Controller failed and starts again", "kind", kind, "reason", err.Error())
			d.reply(protocol.Reply{Kind: kind, Failing: err.Error()})
		}
		if retry.Wait(ctx, clock.RealClock{}, backoff.Step()) != nil {
			return
		}
	}
}

func (d *controllers) runOnce(ctx context.Context, kind protocol.Kind) error {
	setIdle := func(idle bool) { d.setIdle(kind, idle) }
	seen := func(e protocol.Event) { d.reply(protocol.Reply{Kind: kind, Event: &e}) }
	if kind != protocol.Works {
		of := &bundle.Deployer{
			Cluster: d.cluster, Hub: d.hub, Member: d.member, Lost: d.lost, OnlyAgent: kind == protocol.Agent,
			Log: d.log, Clock: clock.RealClock{}, Idle: setIdle,
			Attempts: d.attempts, Renderer: d.renderer,
			AgentIdle: func(generations map[string]int64) { d.reply(protocol.Reply{Kind: kind, Idle: generations}) },
			Blocked:   func(why protocol.Blocked, kept []applied.Kept) { d.reportUnknown(kind, unknown{why, kept}) }, Seen: seen,
		}
		d.setBundles(of)
		defer d.setBundles(nil)
		return d.deploy(ctx, of)
	}
	controller, err := work.New(work.Deps{
		Hub: d.hub.Config(), Member: d.config, Namespace: d.hub.Namespace, Membership: types.UID(d.member), Report: d.hub.Name,
		Clock: clock.RealClock{}, Log: d.log,
		Idle: setIdle, Leaving: d.removesAll(), Seen: seen, Lost: d.lost,
		Kept:           func(kept []applied.Kept) { d.reportUnknown(kind, unknown{kept: kept}) },
		Counted:        func(t protocol.Tally) { d.reply(protocol.Reply{Tally: &t}) },
		ConfirmDeleted: func(ctx context.Context) error { return d.hub.Removable(ctx, types.UID(d.member), hubclient.Works) },
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var removing sync.WaitGroup
	removing.Go(func() {
		select {
		case <-ctx.Done():
			return
		case <-d.removing:
		}
		if err := controller.RemoveAll(ctx, func(left applied.Remaining) { d.reportRemaining(kind, left) }); err != nil {
			cancel(err)
			return
		}
		d.setRemoved(kind)
	})
	err = controller.Run(ctx)
	cancel(err)
	removing.Wait()
	if cause := context.Cause(ctx); err == nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

// deploy runs the Deployer until everything must be removed, then removes it.
func (d *controllers) deploy(ctx context.Context, deployer *bundle.Deployer) error {
	if !d.removesAll() {
		running, stop := context.WithCancel(ctx)
		go func() {
			select {
			case <-running.Done():
			case <-d.removing:
				stop()
			}
		}()
		err := d.runUntilRemoval(running, deployer)
		stop()
		if !d.removesAll() {
			return err
		}
	}
	kind := protocol.Agent // it stays, and leaves by itself
	if !deployer.OnlyAgent {
		kind = protocol.Bundles
		if err := deployer.RemoveAll(ctx, func(left applied.Remaining) { d.reportRemaining(kind, left) }); err != nil {
			return err
		}
	}
	d.setRemoved(kind)
	<-ctx.Done()
	return nil
}

// setBundles sets the running Deployer.
func (d *controllers) setBundles(of *bundle.Deployer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bundles = of
}

// runUntilRemoval runs the Deployer until ctx ends, and reports a slow end of Helm.
func (d *controllers) runUntilRemoval(ctx context.Context, deployer *bundle.Deployer) error {
	over := make(chan struct{})
	defer close(over)
	context.AfterFunc(ctx, func() {
		timer := deployer.Clock.NewTimer(bundle.ReportAfter)
		defer timer.Stop()
		select {
		case <-over:
		case <-timer.C():
			if d.removesAll() {
				d.reply(protocol.Reply{Left: "waiting for Helm to finish its deployments"})
			}
		}
	})
	return deployer.Run(ctx)
}

// setIdle sets whether a controller is idle, and ends the process once all are.
func (d *controllers) setIdle(kind protocol.Kind, idle bool) {
	if d.removesAll() {
		return // removal ends otherwise
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.idle[kind] = idle; d.allIdle() {
		d.end()
	}
}

// allIdle reports whether all controllers are idle. The caller holds the lock.
func (d *controllers) allIdle() bool {
	return !slices.Contains(slices.Collect(maps.Values(d.idle)), false)
}

// removesAll reports whether everything must be removed.
func (d *controllers) removesAll() bool {
	select {
	case <-d.removing:
		return true
	default:
		return false
	}
}

// reportRemaining reports the rest of all kinds.
func (d *controllers) reportRemaining(kind protocol.Kind, left applied.Remaining) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left[kind] = left
	all := applied.Remaining{}
	for _, of := range slices.Sorted(maps.Keys(d.left)) {
		all.Add(d.left[of])
	}
	if all.Left > 0 {
		d.reply(protocol.Reply{Left: "removing the deliveries from this cluster: " + all.String()})
	}
}

// setRemoved marks a kind as removed, and ends the process once all are.
func (d *controllers) setRemoved(kind protocol.Kind) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.left, kind)
	if d.idle[kind] = true; d.allIdle() {
		d.finish()
	}
}

func (d *controllers) finish() {
	d.log.Info("All deliveries to this cluster are removed")
	d.reply(protocol.Reply{Emptied: true})
	d.end()
}

// known drops unknown kinds, because the agent may be newer.
func known(kinds []protocol.Kind) []protocol.Kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k protocol.Kind) bool {
		return !slices.Contains([]protocol.Kind{protocol.Bundles, protocol.Works, protocol.Agent}, k)
	})
}
