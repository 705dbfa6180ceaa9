package agent

import (
	"context"
)

// deliverUnlessQuarantined delivers until ctx ends, except while the hub has quarantined this
// member. The hub then refuses everything but heartbeats and reports, so the agent requests nothing
// else. Deployed resources stay as they are.
func (s *session) deliverUnlessQuarantined(ctx context.Context) {
	for was := false; ctx.Err() == nil; {
		quarantined := s.quarantined()
		switch {
		case quarantined && !was:
			s.log.Info("The hub has quarantined this cluster: the agent only sends heartbeats and reports; what is deployed stays " +
				"as it is, and nothing is added, corrected or removed until an administrator of the hub ends the quarantine")
		case was && !quarantined:
			s.log.Info("The hub has ended the quarantine of this cluster: deliveries continue")
		}
		was = quarantined
		delivering := &runnable{run: s.deliver}
		if !quarantined {
			delivering.start(ctx)
		}
		select {
		case <-ctx.Done():
		case <-s.quarantineChanged:
		}
		delivering.stop()
		delivering.wait()
	}
}

// quarantined reports whether the hub has quarantined this member.
func (s *session) quarantined() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.report.Spec.Quarantined
}
