package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/liveness"
	"github.com/muster-fleet/muster/internal/hub/membership"
	"github.com/muster-fleet/muster/internal/hub/served"
	"github.com/muster-fleet/muster/internal/kube"
)

// depart decides the next step of a Cluster that is being deleted. Unless what was delivered is to be removed, nobody is asked.
func depart(o observed, now time.Time, patience time.Duration) membership.Departure {
	leaver := membership.Leaver{
		Since: o.deleted, Patience: patience, Namespace: o.namespace, Seen: o.joined(), Report: o.report,
		Unasked: o.leavePolicy != clusterv1beta1.LeaveDelete,
	}
	switch {
	case o.identity == "":
		leaver.Mute = "has lost its identity"
	case o.identity == membership.Legacy:
		leaver.Mute = "is a Rancher Fleet agent, which cannot be asked to remove what was delivered"
	case o.liveness == liveness.Lost, o.liveness == liveness.Unknown && o.recordedLost():
		leaver.Trouble = o.lostSince()
	}
	return leaver.Depart(now)
}

// leave sees a member off: its agent is asked if it is to remove something, then the identity and everything of it on the hub goes, then
// the Cluster. The removal of the member namespace Kubernetes carries through in its own time.
func (c *Controller) leave(ctx context.Context, cluster *fleet.Cluster) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(cluster, fleet.FinalizerCluster) {
		return ctrl.Result{}, nil
	}
	o, err := c.observe(ctx, cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	asked := []client.Object{&fleet.Cluster{}}
	if o.report == nil && o.leavePolicy == clusterv1beta1.LeaveDelete {
		asked = append(asked, &clusterv1beta1.InternalMemberCluster{}) // it went with its kind, not by itself
	}
	if definition, err := c.Kinds.Deleted(ctx, asked...); err != nil || definition != "" {
		return ctrl.Result{}, errors.Join(err, c.keep(ctx, cluster, definition))
	}
	now := c.Clock.Now()
	leaving := depart(o, now, c.Config.Current().ForceDeleteWaitTime)
	if leaving.Step == membership.WaitForAgent {
		if err := c.askToLeave(ctx, cluster, o); err != nil {
			return ctrl.Result{}, err
		}
		if err := c.report(ctx, cluster, o, leaving); err != nil {
			return ctrl.Result{}, err
		}
		return kube.At(leaving.Wake, now), nil
	}
	member := membership.OfCluster(cluster)
	if leaving.Step == membership.RemoveNamespace {
		if err := c.removeNamespace(ctx, cluster, leaving); err != nil {
			return ctrl.Result{}, err
		}
	}
	if o.namespace == membership.NamespaceOurs || o.namespace == membership.NamespaceTerminating {
		if err := member.ReleaseWorks(ctx, c.Client, c.Live); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, c.letGo(ctx, cluster)
}

// askToLeave asks the agent to remove what was delivered, and keeps what it needs to answer.
func (c *Controller) askToLeave(ctx context.Context, cluster *fleet.Cluster, o observed) error {
	asked := o.report.Spec
	asked.State, asked.LeavePolicy = clusterv1beta1.ClusterStateLeave, clusterv1beta1.LeaveDelete
	identity := membership.Identity{Member: membership.OfCluster(cluster), Kind: o.identity}
	if err := c.heal(ctx, identity, &o, asked); err != nil || equality.Semantic.DeepEqual(o.report.Spec, asked) {
		return err
	}
	return membership.Ask(ctx, c.Client, o.report, asked)
}

// removeNamespace ends all access at once and starts the removal of the member namespace.
func (c *Controller) removeNamespace(ctx context.Context, cluster *fleet.Cluster, leaving membership.Departure) error {
	member := membership.OfCluster(cluster)
	if leaving.Unanswered != "" {
		text, err := member.RecordLeftovers(ctx, c.Client, c.Live, c.SystemNamespace, leaving.Unanswered)
		if err != nil {
			return err
		}
		c.Recorder.Eventf(cluster, nil, corev1.EventTypeWarning, "ForcedLeave", "Leave", "%s", text)
	}
	if err := member.Revoke(ctx, c.Client); err != nil {
		return err
	}
	return member.DeleteNamespace(ctx, c.Client, c.Live)
}

// keep leaves a Cluster that is being deleted as it is, because somebody deletes a whole kind.
func (c *Controller) keep(ctx context.Context, cluster *fleet.Cluster, definition string) error {
	if definition == "" {
		return nil
	}
	after := cluster.DeepCopy()
	after.Status.Conditions = kube.SetCondition(after.Status.Conditions, c.Clock.Now(),
		kube.Condition(fleet.ConditionReady, false, served.ReasonDefinitionDeleted, served.Kept(definition)))
	if err := kube.PatchStatus(ctx, c.Client, cluster, after); err != nil || after.ResourceVersion == cluster.ResourceVersion {
		return err
	}
	c.written.Store(after)
	c.Recorder.Eventf(after, nil, corev1.EventTypeWarning, served.ReasonDefinitionDeleted, "Leave", "%s", served.Kept(definition))
	return nil
}

func (c *Controller) letGo(ctx context.Context, cluster *fleet.Cluster) error {
	member := membership.OfCluster(cluster)
	c.Judge.Forget(member.Namespace)
	c.Turns.Forget(member.Namespace)
	c.missing.Delete(member.Namespace)
	before := cluster.DeepCopy()
	controllerutil.RemoveFinalizer(cluster, fleet.FinalizerCluster)
	if err := c.Client.Patch(ctx, cluster, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), kube.FieldOwner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the finalizer: %w", err)
	}
	ctrl.LoggerFrom(ctx).Info("Cluster left")
	return nil
}
