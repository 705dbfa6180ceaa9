package agent

import (
	"context"
	"os"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/agent/deployer"
	"github.com/muster-fleet/muster/internal/agent/remote"
)

// Delivery says how what the hub places is carried out.
type Delivery struct {
	// Path is where the program is that does it.
	Path string
	// Arguments tell it how to reach the member.
	Arguments []string
	// Off leaves them alone and says so.
	Off bool
}

// deliver runs the deployer as long as something of these kinds is placed.
func (r *runner) deliver(ctx context.Context, kinds ...deployer.Kind) {
	var all []*deployer.Placed
	for _, kind := range kinds {
		placed := deployer.NewPlaced(kind, r.placed)
		placed.Report = placedAs[kind].report(r)
		all = append(all, placed)
	}
	supervisor := &deployer.Supervisor{
		Path: r.delivery.Path, Arguments: r.delivery.Arguments, Renewed: r.renewed, Placed: all, Changed: r.placed,
		Order: func() deployer.Order { return r.order(all) }, Left: func(ctx context.Context) (bool, error) { return r.delivered(ctx, kinds) },
		Leaves: r.leaves, Empty: r.empty, Block: r.block, Count: countWorks, Log: r.log, Clock: r.clock,
	}
	var working sync.WaitGroup
	defer working.Wait()
	working.Go(func() {
		if r.delivery.Off {
			r.refuse(ctx, all)
			return
		}
		supervisor.Run(ctx)
	})
	for _, placed := range all {
		working.Go(func() { r.follow(ctx, placed) })
	}
}

// features are what the hub may ask of this agent, which takes the program that deploys.
func (r *runner) features() []string {
	if _, err := os.Stat(r.delivery.Path); err != nil || r.delivery.Off {
		return nil
	}
	return r.door.features()
}

// follow keeps what is placed up to date, and says once that it cannot.
func (r *runner) follow(ctx context.Context, placed *deployer.Placed) {
	failing := false
	r.session.FollowPlaced(ctx, placedAs[placed.Kind].resource, placed, func(err error) {
		if err != nil && !failing {
			r.log.Info("watching "+string(placed.Kind)+" failing", "reason", r.session.Explain(err))
		}
		if failing && err == nil {
			poke(r.renewed) // the program may see them now, too
		}
		failing = err != nil
		placed.Followed(err)
	})
}

// placedAs says how to follow a kind, and how to tell what is placed as that why nothing comes of it.
var placedAs = map[deployer.Kind]struct {
	resource schema.GroupVersionResource
	report   func(*runner) func(context.Context, map[string]int64, string) error
}{
	deployer.Bundles: {remote.BundleDeployments, func(r *runner) func(context.Context, map[string]int64, string) error { return r.undelivered }},
	deployer.Works:   {remote.Works, func(r *runner) func(context.Context, map[string]int64, string) error { return r.unapplied }},
}

// delivered says whether anything is left of what was placed.
func (r *runner) delivered(ctx context.Context, kinds []deployer.Kind) (bool, error) {
	left, err := r.member.Applied(ctx, r.session.Namespace)
	if left || err != nil || !slices.Contains(kinds, deployer.Bundles) {
		return left, err
	}
	return r.member.Delivered(ctx, string(r.session.Report.UID))
}

// refuse tells each that is placed that nothing comes of it.
func (r *runner) refuse(ctx context.Context, all []*deployer.Placed) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.placed:
		}
		for _, placed := range all {
			if err := placed.Tell(ctx, "nothing is deployed on this cluster, because its agent was installed with "+r.door.deliveryOff()); err != nil {
				r.log.Info("reporting that nothing is deployed failing", "reason", err.Error())
			}
		}
	}
}

func (r *runner) order(all []*deployer.Placed) deployer.Order {
	order := deployer.Order{
		Hub: r.session.Target(), Token: r.held.Load().Token, Namespace: r.session.Namespace, Name: r.session.Name, Member: string(r.session.Report.UID),
		Leave: r.leaves(),
	}
	for _, placed := range all {
		// To remove what was delivered needs nothing that the hub shows.
		if placed.Offered() || placed.Kind == deployer.Bundles && order.Leave == clusterv1beta1.LeaveDelete {
			order.Kinds = append(order.Kinds, placed.Kind)
		}
	}
	return order
}
