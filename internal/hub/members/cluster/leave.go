package cluster

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/members/lifecycle"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/kube"
)

// leaver returns the inputs to decide how a deleted Cluster leaves. The hub requests its agent to
// leave only if the agent must remove deliveries, or itself.
func leaver(o observed, timeout time.Duration) lifecycle.Leaver {
	l := lifecycle.Leaver{Observed: o.Observed, Timeout: timeout, Unasked: o.LeavePolicy != clusterv1beta1.LeaveDelete && !o.Uninstall}
	switch {
	case o.agent == "":
		l.CannotAnswer = "has lost its identity"
	case o.agent == membership.Legacy:
		l.CannotAnswer = "is Rancher Fleet's, which cannot remove its deliveries"
	case o.Lost():
		l.Problem = o.lostSince()
	}
	return l
}

func (r *reconciliation) Leaver(timeout time.Duration) lifecycle.Leaver { return leaver(r.o, timeout) }

// Forget drops the times since when the identity is missing or an older credential is in use.
func (c *Controller) Forget(namespace string) {
	c.missing.Forget(namespace)
	c.renewer.Forget(namespace)
}

func (r *reconciliation) AskToLeave(ctx context.Context) error {
	asked := r.o.Report.Spec
	asked.State, asked.LeavePolicy, asked.UninstallAgent = clusterv1beta1.ClusterStateLeave, r.o.LeavePolicy, r.o.Uninstall
	if err := r.restore(ctx, &r.o, asked); err != nil {
		return err
	}
	return membernamespace.Ask(ctx, r.Client, r.o.Report, asked)
}

func (r *reconciliation) Kept(reason, message string) client.Object {
	after := r.cluster.DeepCopy()
	after.Status.Conditions = kube.SetCondition(after.Status.Conditions, r.Clock.Now(),
		kube.Condition(fleet.ConditionReady, false, reason, message))
	return after
}

func (r *reconciliation) Access() client.Object { return r.o.Account() }
