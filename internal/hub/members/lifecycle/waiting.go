package lifecycle

import (
	"fmt"
	"time"
)

// Rival describes an agent waiting for the active agent with the same credential.
type Rival struct {
	// Message names the two agents and the remedy; "" if there is only one agent.
	Message string
	// Until is the time of the next decision without an event; zero if none.
	Until time.Time
}

// Rival decides whether the membership object shows two agents with one credential. It does if an
// agent has waited longer than a Pod under replacement, and then for the rest of the agent's wait.
// recorded is the shown message; began is the start of this hub's watch.
func (o Observed) Rival(recorded, remedy string, began, now time.Time) Rival {
	waiting, budget := o.Liveness.Waiting, o.Liveness.Budget
	switch {
	case waiting == nil && recorded != "" && now.Before(began.Add(budget)):
		return Rival{Message: recorded, Until: began.Add(budget)}
	case waiting == nil, recorded == "" && !waiting.Lasts(budget):
		return Rival{}
	}
	return Rival{Until: waiting.Ends(budget),
		Message: fmt.Sprintf("two agents have the credential of this member: %q sends heartbeats, and %q waits to replace it (each name "+
			"begins with the UID of its Namespace kube-system, and has its Pod and its process): %s",
			waiting.Holder, waiting.Waiter, remedy)}
}
