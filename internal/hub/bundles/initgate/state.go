package initgate

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/bundles/rollup"
	"github.com/muster-fleet/muster/internal/kube"
)

// The gates of a Cluster:
//
//	 Waiting at gate i ── Bundle ready, condition True ──► Waiting at gate i+1 ──► … ──► Finished
//	      ▲       │                                              │
//	      └───────┴────────── an earlier one is not any more ────┘
//
// Finished is final, even if the gates change later.

// decision is the state of the gates of a Cluster.
type decision struct {
	// opened is the number of open gates, from the first. finished: all are, or were once.
	opened   int
	finished bool
	// waits is the next gate, with the reason why it is closed.
	waits string
}

// decide returns the state of the gates. Without gates and a former state nothing is opened or
// finished.
func decide(cluster *fleet.Cluster, deployments map[string]*fleet.BundleDeployment) decision {
	gates := cluster.Spec.InitGates
	if at := cluster.Status.Initialization; at != nil && at.Finished != nil {
		return decision{opened: at.Opened, finished: true}
	}
	for i, gate := range gates {
		if closed := closedBy(cluster, gate, deployments[gate.Bundle]); closed != "" {
			waits := fmt.Sprintf("init gate %d of %d waits for %s: %s", i+1, len(gates), membership.InitGateName(gate), closed)
			return decision{opened: i, waits: waits}
		}
	}
	return decision{opened: len(gates), finished: len(gates) > 0}
}

// closedBy returns the reason why a gate is closed; "" if it is open.
func closedBy(cluster *fleet.Cluster, gate fleet.InitGate, deployment *fleet.BundleDeployment) string {
	if gate.Bundle == "" {
		switch c := kube.FindCondition(cluster.Status.Conditions, gate.Condition); {
		case c == nil:
			return "the Cluster does not have it yet"
		case c.Status != corev1.ConditionTrue:
			return fmt.Sprintf("it is %s: %s", c.Status, cmp.Or(c.Message, c.Reason, "it gives no reason"))
		}
		return ""
	}
	if deployment == nil {
		return fmt.Sprintf("it has no deployment on this Cluster: create it in workspace %s, and let one of its targets match", cluster.Namespace)
	}
	switch state := delivery.EffectiveState(deployment); state {
	case fleet.StateReady:
		return ""
	case fleet.StateWaitingForDependency:
		return fmt.Sprintf("it is %s: %s; make the Bundles that it depends on earlier init gates", state, rollup.Message(deployment))
	default:
		return fmt.Sprintf("it is %s: %s", state, cmp.Or(rollup.Message(deployment), "the Bundle says more"))
	}
}

// describe writes the decision into the status of a Cluster.
func describe(status *fleet.ClusterStatus, d decision, now time.Time) {
	if !d.finished && d.waits == "" {
		status.Initialization = nil
		status.Conditions = kube.RemoveCondition(status.Conditions, fleet.ConditionInitialized)
		return
	}
	before := status.Initialization
	status.Initialization = &fleet.ClusterInitialization{Opened: d.opened}
	condition := kube.Condition(fleet.ConditionInitialized, d.finished, reasons.NotInitialized, d.waits)
	if d.finished {
		condition.Reason = reasons.Initialized
		finished := metav1.NewTime(now.Truncate(time.Second))
		if status.Initialization.Finished = &finished; before != nil && before.Finished != nil {
			status.Initialization.Finished = before.Finished
		}
	}
	status.Conditions = kube.SetCondition(status.Conditions, now, condition)
}
