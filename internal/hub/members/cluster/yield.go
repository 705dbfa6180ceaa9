package cluster

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/members/lifecycle"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/kube"
)

// yield leaves a Cluster to another manager, named by a label. The label stops the hub from
// managing the Cluster, but the hub still ends the access it granted. Every editor of the Cluster
// may set the label.
func (r *reconciliation) yield(ctx context.Context) (ctrl.Result, error) {
	member := membernamespace.OfCluster(r.cluster)
	r.Liveness.Forget(member.Namespace)
	r.Forget(member.Namespace)
	// If a Cluster had the label from the start, the hub has not touched it; another manager writes
	// its status. A user may have removed the hub's finalizer from a Cluster.
	if !controllerutil.ContainsFinalizer(r.cluster, fleet.FinalizerCluster) && !membership.Revoked(r.cluster) {
		return ctrl.Result{}, nil
	}
	left, err := r.Revoke(ctx, r.cluster, r)
	if err != nil {
		return ctrl.Result{}, err
	}
	r.o = observed{
		Observed: lifecycle.Observed{Member: membernamespace.OfCluster(r.cluster), Revoked: membership.Revoked(r.cluster), AccessLeft: left},
		before:   r.cluster.Status, elsewhere: r.cluster.Labels[fleet.LabelClusterManagement],
	}
	ready := readiness(r.o)
	after := r.cluster.DeepCopy()
	after.Status.AgentState = string(ready.agent)
	if r.o.Revoked {
		after.Status.Namespace, after.Status.Display.State = "", ready.reason
	}
	after.Status.Conditions = kube.SetCondition(after.Status.Conditions, r.Clock.Now(),
		kube.Condition(fleet.ConditionReady, false, ready.reason, ready.message))
	if err := r.WriteStatus(ctx, r.cluster, after); err != nil {
		return ctrl.Result{}, err
	}
	r.announce(ctx, after, &r.o.before)
	return r.o.RevokedResult(), nil
}

// managedElsewhere returns the Ready condition's content for a Cluster under another manager.
func managedElsewhere(o observed) result {
	return result{reason: reasons.ManagedElsewhere, message: fmt.Sprintf("label %s=%s assigns this Cluster to another manager: this hub "+
		"delivers nothing to it, and does not monitor its agent. The access of the agent to namespace %s stays; to end it: kubectl -n %s "+
		"annotate cluster.fleet.cattle.io %s muster/revoked=true, or remove the label",
		fleet.LabelClusterManagement, kube.Clip(o.elsewhere, maxShown), o.Namespace, o.Workspace, o.Name)}
}
