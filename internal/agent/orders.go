package agent

import (
	"context"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/kubeclient"
)

// watchReport watches the report for requests of the hub.
func (s *session) watchReport(ctx context.Context) {
	changed := notification()
	mirror := kubeclient.NewMirror[*clusterv1beta1.InternalMemberCluster](changed)
	watching := &runnable{run: func(ctx context.Context) { s.hub.FollowReport(ctx, mirror) }}
	watching.start(ctx)
	defer watching.wait()
	defer watching.stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.moved:
			// The old address may stop answering without ending the watch.
			watching.stop()
			watching.start(ctx)
			continue
		case <-changed:
		}
		s.doubt(mirror.Failure())
		current, synced := mirror.Get()
		switch {
		case !synced:
		case current == nil:
			kubeclient.Notify(s.doubts)
		default:
			s.handleReport(current)
		}
	}
}

// handleReport handles the requests of the hub in a report.
func (s *session) handleReport(current *clusterv1beta1.InternalMemberCluster) {
	raised := s.terms.raise(current.Spec.HubTerm)
	if s.terms.enter(current) || raised {
		kubeclient.Notify(s.termRaised)
	}
	if raised {
		kubeclient.Notify(s.deliveryDue)
	}
	current, fenced := s.obey(current)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.followObeyed(fenced)
	if before := s.report.Spec; before.State != current.Spec.State || before.LeavePolicy != current.Spec.LeavePolicy ||
		before.UninstallAgent != current.Spec.UninstallAgent {
		s.removal, s.uninstall = removal{}, uninstallProgress{}
		kubeclient.Notify(s.uninstallDue)
		kubeclient.Notify(s.deliveryDue)
		kubeclient.Notify(s.placed)
	}
	if s.report.Spec.Quarantined != current.Spec.Quarantined {
		kubeclient.Notify(s.quarantineChanged)
	}
	s.report = current
	if s.issued != nil {
		s.issued.observe(current)
	}
	s.status.setWarning(current.Spec.Warning)
	if s.left && current.Spec.State != clusterv1beta1.ClusterStateLeave {
		s.left = false
		s.status.set(Joined, "the hub lets this cluster join again; sending the first heartbeat")
	}
	kubeclient.Notify(s.reportChanged)
	kubeclient.Notify(s.periodChanged)
	kubeclient.Notify(s.addressAsked)
}
