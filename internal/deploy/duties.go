package deploy

import (
	"context"
	"os"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/muster-fleet/muster/internal/agent/deployer"
	"github.com/muster-fleet/muster/internal/agent/remote"
	"github.com/muster-fleet/muster/internal/agent/retry"
	"github.com/muster-fleet/muster/internal/agent/work"
	"github.com/muster-fleet/muster/internal/deploy/release"
)

// duties are what the program does for one member: one for each kind that the hub lets it see. They end when none has anything left.
type duties struct {
	config  *rest.Config
	cluster *release.Cluster
	hub     *remote.Member
	member  string
	log     logr.Logger

	end     context.CancelFunc
	running sync.WaitGroup
	mu      sync.Mutex
	idle    map[deployer.Kind]bool
	answers *os.File
}

// take begins what an order asks for and what is not under way yet.
func (d *duties) take(ctx context.Context, kinds []deployer.Kind) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, kind := range kinds {
		if _, begun := d.idle[kind]; !begun && ctx.Err() == nil {
			d.idle[kind] = false
			d.running.Go(func() { d.keep(ctx, kind) })
		}
	}
}

// keep carries out one kind, and begins anew, after a wait, when that fails: the others are not to suffer.
func (d *duties) keep(ctx context.Context, kind deployer.Kind) {
	for pace := retry.Unreachable(); ctx.Err() == nil; {
		err := d.carryOut(ctx, kind)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			d.log.Info("carrying out "+string(kind)+" failing", "reason", err.Error())
			d.answer(deployer.Answer{Kind: kind, Failing: err.Error()})
		}
		if retry.Wait(ctx, clock.RealClock{}, pace.Step()) != nil {
			return
		}
	}
}

func (d *duties) carryOut(ctx context.Context, kind deployer.Kind) error {
	rests := func(idle bool) { d.rests(kind, idle) }
	if kind == deployer.Works {
		controller, err := work.New(work.Deps{
			Hub: d.hub.Config(), Member: d.config, Namespace: d.hub.Namespace, Clock: clock.RealClock{}, Log: d.log, Idle: rests,
		})
		if err != nil {
			return err
		}
		return controller.Run(ctx)
	}
	return (&Deployer{Cluster: d.cluster, Hub: d.hub, Member: d.member, Log: d.log, Clock: clock.RealClock{}, Idle: rests}).Run(ctx)
}

// rests takes note of whether a kind has anything left.
func (d *duties) rests(kind deployer.Kind, idle bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.idle[kind] = idle
	for _, idle := range d.idle {
		if !idle {
			return
		}
	}
	d.end()
}

// answer tells the agent something.
func (d *duties) answer(a deployer.Answer) {
	if err := a.Send(d.answers); err != nil {
		d.log.Info("telling the agent failing", "reason", err.Error())
	}
}

// known drops kinds that this program does not know: the agent may be newer.
func known(kinds []deployer.Kind) []deployer.Kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k deployer.Kind) bool { return k != deployer.Bundles && k != deployer.Works })
}
