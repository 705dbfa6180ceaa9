package agent

import (
	"context"
	"os"
	"slices"
	"sync"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/agent/supervise"
	"github.com/muster-fleet/muster/internal/delivery/protocol"
	"github.com/muster-fleet/muster/internal/kubeclient"
	"github.com/muster-fleet/muster/internal/logging"
)

// Delivery selects the program for delivery.
type Delivery struct {
	// Path is the path of the program.
	Path string
	// Arguments are the arguments of the program, with its access to the member.
	Arguments []string
	// Simulation replaces the program within this process in a simulated fleet; nil otherwise.
	Simulation supervise.Simulation
	// Off disables delivery; the agent reports this to delivered objects.
	Off bool
}

// deliver runs the deployer while the hub delivers objects to the member, until ctx ends.
func (s *session) deliver(ctx context.Context) {
	var watched []*supervise.Placed
	for _, kind := range s.kinds() {
		placed := supervise.NewPlaced(kind, s.placed)
		if placed.Report = s.reportNotRunning(kind); kind == protocol.Works {
			placed.First = s.deliveryDue
		}
		watched = append(watched, placed)
	}
	supervisor := &supervise.Supervisor{
		Path: s.delivery.Path, Arguments: s.delivery.Arguments, Simulation: s.delivery.Simulation, Renewed: s.deliveryDue,
		Placed: watched, Changed: s.placed,
		Order: func() protocol.Order { return s.order(watched) }, Left: s.anythingLeft,
		Leaves: s.leavePolicy, Empty: s.setRemoval, Block: s.setBlocked, Count: countWorks, Log: s.log, Clock: s.clock,
	}
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() {
		if s.delivery.Off {
			s.reportDeliveryOff(ctx, watched)
			return
		}
		supervisor.Run(ctx)
	})
	for _, placed := range watched {
		running.Go(func() { s.watchPlaced(ctx, placed) })
	}
}

// features returns the features of this agent for the hub. Most need the deployer.
func (s *session) features() []string {
	if _, err := os.Stat(s.delivery.Path); err != nil && s.delivery.Simulation == nil || s.delivery.Off {
		return s.mode.always
	}
	features := slices.Concat(s.mode.always, s.mode.features)
	if s.upgradable {
		features = append(features, clusterv1beta1.FeatureManagedAgent)
	}
	if s.deployment != "" {
		features = append(features, clusterv1beta1.FeatureUninstall)
	}
	if s.hosted { // no Deployment on the member could replace it
		features = slices.DeleteFunc(features, func(f string) bool { return f == clusterv1beta1.FeatureManagedAgent })
		features = append(features, clusterv1beta1.FeatureHosted)
	}
	return features
}

// kinds returns the kinds delivered by the hub to this member.
func (s *session) kinds() []protocol.Kind {
	if s.upgradable {
		return append(slices.Clone(s.mode.kinds), protocol.Agent)
	}
	return s.mode.kinds
}

// watchPlaced watches the objects of a kind while the deployer does not.
func (s *session) watchPlaced(ctx context.Context, placed *supervise.Placed) {
	var outage logging.Outage
	outcome := func(err error) {
		if err == nil {
			if outage.End() {
				kubeclient.Notify(s.deliveryDue) // the program may see them now, too
			}
		} else if reason := s.hub.Explain(err); outage.IsNews(reason) {
			s.log.Info("Failed to watch deliveries", "kind", placed.Kind, "reason", reason)
		}
		placed.Followed(err)
	}
	placed.Watch(ctx, func(ctx context.Context) { s.hub.FollowPlaced(ctx, resources[placed.Kind], placed, outcome) })
}

// anythingLeft reports whether the member has any delivered objects left.
func (s *session) anythingLeft(ctx context.Context) (bool, error) {
	members := []string{string(s.hub.Report.UID)}
	if s.leavePolicy() == "" { // else the deliveries of a lost hub stay
		members = append(members, s.terms.lostMemberships()...)
	}
	left, err := s.member.HasApplied(ctx, s.hub.Namespace, members...)
	if left || err != nil {
		s.hasApplied.Store(true)
	}
	if left || err != nil || !slices.Contains(s.mode.kinds, protocol.Bundles) {
		return left, err
	}
	if left, err = s.member.HasReleases(ctx, members...); left || err != nil || s.leavePolicy() != "" {
		return left, err
	}
	// Only the deployer can find releases of another agent without a Bundle.
	return s.member.HasUnownedReleases(ctx)
}

// reportDeliveryOff notes on all delivered objects that delivery is off.
func (s *session) reportDeliveryOff(ctx context.Context, watched []*supervise.Placed) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.placed:
		}
		for _, placed := range watched {
			if err := placed.ReportReason(ctx,
				"nothing is deployed on this cluster, because its agent was installed with "+s.mode.deliverySetting); err != nil {
				s.log.Info("Failed to report that nothing is deployed", "reason", err.Error())
			}
		}
	}
}

func (s *session) order(watched []*supervise.Placed) protocol.Order {
	order := protocol.Order{
		Hub: s.hub.Target(), Token: s.credential.Load().Token, Namespace: s.hub.Namespace, Name: s.hub.Name, Member: string(s.hub.Report.UID),
		Leave: s.leavePolicy(), HubTerm: s.terms.get(), Lost: s.terms.lostMemberships(),
	}
	if s.credential.Load().Login != nil {
		return order // the deployer waits for a credential of the hub, which replaces the kubeconfig's identity
	}
	for _, placed := range watched {
		if s.needed(placed, order.Leave) {
			order.Kinds = append(order.Kinds, placed.Kind)
		}
	}
	return order
}

// needed reports whether the deployer must watch a kind. It watches Works from the first one on, or
// if objects of earlier ones remain: most Clusters never have any.
func (s *session) needed(placed *supervise.Placed, leave clusterv1beta1.LeavePolicy) bool {
	switch {
	case placed.Kind == protocol.Bundles && leave == clusterv1beta1.LeaveDelete:
		return true // removal needs nothing from the hub
	case placed.Kind == protocol.Agent && leave != "":
		return false
	case placed.Kind == protocol.Works && leave != clusterv1beta1.LeaveDelete && !placed.Begun() && !s.hasApplied.Load():
		return false
	}
	return placed.Offered()
}
