package member

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/membership"
)

// step is what a MemberCluster that is being deleted needs next.
type step string

const (
	// waitForAgent: the agent is asked to leave and has not answered.
	waitForAgent step = "WaitForAgent"
	// removeNamespace: the agent has left, or nobody is there to ask; its access ends, its namespace and then the record go.
	removeNamespace step = "RemoveNamespace"
	// letGo: there is no namespace, or it is going; the record goes.
	letGo step = "LetGo"
)

// departure is how far a member is with leaving.
type departure struct {
	step    step
	message string
	// forced: the agent did not answer in time, and what it holds is left behind.
	forced bool
	// wake is when the wait is over; zero if only an event ends it.
	wake time.Time
}

// depart decides the next step of leaving.
func depart(o observed, now time.Time, patience time.Duration) departure {
	joined := agentCondition(o, clusterv1beta1.ConditionJoined)
	deadline := o.deleted.Add(patience)
	switch {
	case o.namespace != membership.NamespaceOurs:
		return departure{step: letGo}
	case o.report == nil, !o.seen():
		return departure{step: removeNamespace}
	case joined != nil && joined.Status == metav1.ConditionFalse:
		return departure{step: removeNamespace}
	case !now.Before(deadline):
		return departure{step: removeNamespace, forced: true}
	}
	return departure{step: waitForAgent, wake: deadline, message: fmt.Sprintf("leaving: waiting for the member agent to answer, at most until %s (%s)",
		deadline.UTC().Format(time.RFC3339), deadline.Sub(now).Round(time.Second))}
}
