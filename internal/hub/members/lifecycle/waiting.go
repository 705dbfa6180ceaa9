package lifecycle

import (
	"fmt"
	"time"
)

// Rival is an agent that waits for the one that beats with the same credential.
type Rival struct {
	// Message says which two agents there are, and what to do; "" if there is no other one.
	Message string
	// Until is when that is to be decided again without an event; zero if never.
	Until time.Time
}

// Rival decides whether the record says that two agents have the credential of the member: when one of them has waited for longer than a pod does that is being
// replaced, and then for as long as it goes on to say so. recorded is what the record says so far, began when this hub began to watch.
func (o Observed) Rival(recorded, remedy string, began, now time.Time) Rival {
	waiting, budget := o.Liveness.Waiting, o.Liveness.Budget
	switch {
	case waiting == nil && recorded != "" && now.Before(began.Add(budget)):
		return Rival{Message: recorded, Until: began.Add(budget)}
	case waiting == nil, recorded == "" && !waiting.Lasts(budget):
		return Rival{}
	}
	return Rival{Until: waiting.Ends(budget), Message: fmt.Sprintf("two agents have the credential of this member: %q beats, and %q waits to take its place "+
		"(each named by the beginning of the UID of the Namespace kube-system of its cluster, its Pod and its process): %s", waiting.Holder, waiting.Waiter, remedy)}
}
