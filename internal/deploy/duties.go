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
	lease   lease
	// attempts are those of all that is begun.
	attempts *Attempts

	end     context.CancelFunc
	running sync.WaitGroup
	mu      sync.Mutex
	idle    map[deployer.Kind]bool
	// deploys is what carries out Bundles; nil if nothing does.
	deploys *Deployer
	// answers is written to under saying.
	answers *os.File
	saying  sync.Mutex
	// emptying is closed when all is to be removed, left is what remains then, until a kind is done.
	emptying chan struct{}
	left     map[deployer.Kind]work.Remaining
}

// take begins what an order asks for and what is not under way yet.
func (d *duties) take(ctx context.Context, order deployer.Order) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if order.Leave == clusterv1beta1.LeaveDelete && !d.empties() {
		for kind := range d.idle {
			d.idle[kind] = false
		}
		close(d.emptying)
	}
	for _, kind := range known(order.Kinds) {
		if _, begun := d.idle[kind]; !begun && ctx.Err() == nil {
			d.idle[kind] = false
			d.running.Go(func() { d.keep(ctx, kind) })
		}
	}
	if d.empties() && len(d.idle) == 0 {
		d.finish()
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
	if kind == deployer.Bundles {
		of := &Deployer{
			Cluster: d.cluster, Hub: d.hub, Member: d.member, Log: d.log, Clock: clock.RealClock{}, Idle: rests, Attempts: d.attempts,
			Rested:  func(generations map[string]int64) { d.answer(deployer.Answer{Kind: kind, Rested: generations}) },
			Blocked: func(blocked deployer.Blocked) { d.answer(deployer.Answer{Blocked: &blocked}) },
		}
		d.deploying(of)
		defer d.deploying(nil)
		return d.deploy(ctx, of)
	}
	controller, err := work.New(work.Deps{
		Hub: d.hub.Config(), Member: d.config, Namespace: d.hub.Namespace, Membership: types.UID(d.member), Clock: clock.RealClock{}, Log: d.log,
		Idle: rests, Leaving: d.empties(),
		Tell:  func(t work.Tally) { d.answer(deployer.Answer{Tally: (*deployer.Tally)(&t)}) },
		Stays: func(ctx context.Context) error { return d.hub.Removable(ctx, types.UID(d.member), remote.Works) },
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
		case <-d.emptying:
		}
		if err := controller.RemoveAll(ctx, func(left work.Remaining) { d.remains(kind, left) }); err != nil {
			cancel(err)
			return
		}
		d.emptied(kind)
	})
	err = controller.Run(ctx)
	cancel(err)
	removing.Wait()
	if cause := context.Cause(ctx); err == nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

// deploy carries out Bundles until all is to be removed, and removes it.
func (d *duties) deploy(ctx context.Context, of *Deployer) error {
	if !d.empties() {
		turn, stop := context.WithCancel(ctx)
		go func() {
			select {
			case <-turn.Done():
			case <-d.emptying:
				stop()
			}
		}()
		err := d.finishing(turn, of)
		stop()
		if !d.empties() {
			return err
		}
	}
	if err := of.RemoveAll(ctx, func(left work.Remaining) { d.remains(deployer.Bundles, left) }); err != nil {
		return err
	}
	d.emptied(deployer.Bundles)
	<-ctx.Done()
	return nil
}

// deploying notes what carries out Bundles.
func (d *duties) deploying(of *Deployer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.deploys = of
}

// finishing carries out Bundles until ctx ends, and says if Helm takes long to end what it had begun.
func (d *duties) finishing(ctx context.Context, of *Deployer) error {
	over := make(chan struct{})
	defer close(over)
	context.AfterFunc(ctx, func() {
		timer := of.Clock.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-over:
		case <-timer.C():
			if d.empties() {
				d.answer(deployer.Answer{Left: "waiting for Helm to end the deployments that it had begun"})
			}
		}
	})
	return of.Run(ctx)
}

// rests takes note of whether a kind has anything left.
func (d *duties) rests(kind deployer.Kind, idle bool) {
	if d.empties() {
		return // that ends otherwise
	}
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

// empties says whether all is to be removed.
func (d *duties) empties() bool {
	select {
	case <-d.emptying:
		return true
	default:
		return false
	}
}

// remains tells how much is left of all kinds.
func (d *duties) remains(kind deployer.Kind, left work.Remaining) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left[kind] = left
	all := work.Remaining{}
	for _, of := range slices.Sorted(maps.Keys(d.left)) {
		all.Left += d.left[of].Left
		all.Held = append(all.Held, d.left[of].Held...)
	}
	if all.Left > 0 {
		d.answer(deployer.Answer{Left: "removing what was placed on this cluster: " + all.String()})
	}
}

// emptied notes that nothing is left of a kind, and ends it all when that is so of every kind.
func (d *duties) emptied(kind deployer.Kind) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.left, kind)
	d.idle[kind] = true
	for _, done := range d.idle {
		if !done {
			return
		}
	}
	d.finish()
}

func (d *duties) finish() {
	d.log.Info("all that was placed on this cluster is removed")
	d.answer(deployer.Answer{Emptied: true})
	d.end()
}

// known drops kinds that this program does not know: the agent may be newer.
func known(kinds []deployer.Kind) []deployer.Kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k deployer.Kind) bool { return k != deployer.Bundles && k != deployer.Works })
}
