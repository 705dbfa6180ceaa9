package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/agent/remote"
	"github.com/muster-fleet/muster/internal/agent/retry"
)

// departureTimeout is for how long an agent that has registered elsewhere tries to leave the membership before. After that the hub sees it as
// lost, and what was delivered stays.
const departureTimeout = 10 * time.Minute

// leaveBehind leaves a membership in whose place another one is: as if its hub had asked for that, with the leave policy that the hub told.
// That goes on beside the new membership, which delivers nothing while the one before is emptied.
func (a *Agent) leaveBehind(ctx context.Context, from *remote.Session, asked *clusterv1beta1.InternalMemberCluster, to *remote.Session) {
	before, departed := a.departed, make(chan struct{})
	log := a.log.WithValues("leaving", from.Credential.Record(), "hub", from.Server())
	leaver := *a
	leaver.log, leaver.standing = log, &standing{log: log, quiet: true}
	asked = asked.DeepCopy()
	asked.Spec.State = clusterv1beta1.ClusterStateLeave
	r := leaver.newRunner(from, asked)
	keeps := r.delivery.Off || r.leaves() == clusterv1beta1.LeaveOrphan
	r.farewell = fmt.Sprintf("this cluster registered as %s at %s; %s", to.Credential.Record(), to.Server(), whatBecame(keeps))
	r.pace = r.period()
	if keeps {
		r.departed = make(chan struct{}) // there is nothing to do for the program that delivers
	} else {
		a.departed = departed
	}
	from.ExpectReport(asked.UID)
	a.departing.Go(func() {
		defer close(departed)
		defer from.Close()
		if !await(ctx, before) {
			return
		}
		log.Info("leaving the membership before", "leavePolicy", r.leaves())
		if problem := r.untilLeft(logr.NewContext(ctx, log)); problem != "" {
			log.Info("the hub was not told that this cluster left it: delete the record there", "reason", problem)
			return
		}
		log.Info("left the membership before")
	})
}

func whatBecame(keeps bool) string {
	if keeps {
		return "what was delivered to it stays there"
	}
	return "what was delivered to it was removed"
}

// untilLeft beats and reports until the hub has accepted that this member left, and says what kept it from that.
func (r *runner) untilLeft(ctx context.Context) (problem string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	left := false
	r.gone = func() {
		left = true
		cancel()
	}
	var working sync.WaitGroup
	if err := r.identify(ctx); err != nil {
		return err.Error()
	}
	timedOut := false
	working.Go(func() {
		if retry.Wait(ctx, r.clock, departureTimeout) == nil {
			timedOut = true
			cancel()
		}
	})
	working.Go(func() { r.beat(ctx) })
	_, refusal := r.untilRefused(ctx)
	cancel()
	working.Wait()
	switch {
	case left:
		return ""
	case timedOut:
		return fmt.Sprintf("no answer within %s", departureTimeout)
	case refusal == "":
		return "the agent ended"
	}
	return refusal
}
