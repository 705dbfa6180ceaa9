package agentbundle

import (
	"testing"
	"time"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
)

func TestAnAgentThatHasJustJoinedIsReportedOnceItIsUpToDateOrLate(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for what, c := range map[string]struct {
		state State
		age   time.Duration
		said  bool
		want  time.Duration
		// sent is the time since the hub sent the version; 0 if it did not.
		sent time.Duration
	}{
		"waits for its turn":           {WaitingForTurn, 0, false, firstTurn, 0},
		"is sent its Bundle":           {send, 10 * time.Second, false, controller.Adoption, 0},
		"is updated":                   {Updating, 29 * time.Second, false, time.Second, 29 * time.Second},
		"got its version late":         {Updating, time.Minute, false, 25 * time.Second, 5 * time.Second},
		"is late":                      {Updating, controller.Adoption, false, 0, controller.Adoption},
		"is up to date":                {UpToDate, time.Second, false, 0, time.Second},
		"does not come back":           {DidNotComeBack, time.Second, false, 0, time.Second},
		"is stopped by another":        {RolloutStopped, time.Second, false, 0, 0},
		"is left alone":                {NotManaged, time.Second, false, 0, 0},
		"was reported before":          {Updating, time.Second, true, 0, time.Second},
		"by a clock that is behind":    {Updating, -time.Hour, false, 0, 0},
		"got its identity long before": {WaitingForTurn, 24 * time.Hour, false, 0, 0},
	} {
		o := observed{cluster: &fleet.Cluster{}, identified: now.Add(-c.age)}
		if c.sent > 0 {
			o.sentAt = now.Add(-c.sent)
		}
		if c.said {
			o.cluster.Status.Conditions = []fleet.Condition{kube.Condition(fleet.ConditionAgentUpToDate, true, string(UpToDate), "")}
		}
		if got := o.reportIn(c.state, now); got != c.want {
			t.Errorf("an agent that %s is reported in %s, want %s", what, got, c.want)
		}
	}
}
