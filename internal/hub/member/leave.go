package member

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/membership"
	"github.com/muster-fleet/muster/internal/hub/served"
	"github.com/muster-fleet/muster/internal/kube"
)

// leave sees a member off: the agent is asked, then its access and everything of it on the hub goes, then the record.
func (c *Controller) leave(ctx context.Context, mc *clusterv1beta1.MemberCluster) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(mc, clusterv1beta1.FinalizerMemberCluster) {
		return ctrl.Result{}, nil
	}
	o, err := c.observe(ctx, mc)
	if err != nil {
		return ctrl.Result{}, err
	}
	asked := []client.Object{&clusterv1beta1.MemberCluster{}}
	if o.report == nil && o.leavePolicy == clusterv1beta1.LeaveDelete {
		asked = append(asked, &clusterv1beta1.InternalMemberCluster{}) // it went with its kind, not by itself
	}
	if definition, err := c.Kinds.Deleted(ctx, asked...); err != nil || definition != "" {
		return ctrl.Result{}, errors.Join(err, c.keep(ctx, mc, definition))
	}
	now := c.Clock.Now()
	leaving := depart(o, now, c.Config.Current().ForceDeleteWaitTime)
	if leaving.Step != membership.WaitForAgent {
		if leaving.Step == membership.RemoveNamespace {
			err = c.removeNamespace(ctx, mc, leaving)
		}
		if err != nil {
			return ctrl.Result{}, err
		}
		if o.namespace == membership.NamespaceOurs || o.namespace == membership.NamespaceTerminating {
			if err := membership.OfMemberCluster(mc).ReleaseWorks(ctx, c.Client, c.Live); err != nil {
				return ctrl.Result{}, err
			}
		}
		return ctrl.Result{}, c.letGo(ctx, mc)
	}
	if err := c.ask(ctx, mc, o, clusterv1beta1.ClusterStateLeave); err != nil {
		return ctrl.Result{}, err
	}
	if err := c.report(ctx, mc, o, leaving); err != nil {
		return ctrl.Result{}, err
	}
	return kube.At(leaving.Wake, now), nil
}

// removeNamespace ends all access at once and starts the removal of the namespace, which Kubernetes carries through in its own time.
func (c *Controller) removeNamespace(ctx context.Context, mc *clusterv1beta1.MemberCluster, leaving membership.Departure) error {
	member := membership.OfMemberCluster(mc)
	if leaving.Unanswered != "" {
		text, err := member.RecordLeftovers(ctx, c.Client, c.Live, c.SystemNamespace, leaving.Unanswered)
		if err != nil {
			return err
		}
		c.Recorder.Eventf(mc, nil, corev1.EventTypeWarning, "ForcedLeave", "Leave", "%s", text)
	}
	if err := kube.Delete(ctx, c.Client, membership.Desired{Member: member}.Binding()); err != nil {
		return err
	}
	return member.DeleteNamespace(ctx, c.Client, c.Live)
}

// keep leaves a MemberCluster that is being deleted as it is, because somebody deletes a whole kind.
func (c *Controller) keep(ctx context.Context, mc *clusterv1beta1.MemberCluster, definition string) error {
	if definition == "" {
		return nil
	}
	after := mc.DeepCopy()
	if !meta.SetStatusCondition(&after.Status.Conditions, metav1.Condition{
		Type: clusterv1beta1.ConditionReadyToJoin, Status: metav1.ConditionFalse, Reason: served.ReasonDefinitionDeleted,
		Message: served.Kept(definition), ObservedGeneration: mc.Generation, LastTransitionTime: metav1.NewTime(c.Clock.Now()),
	}) {
		return nil
	}
	if err := kube.PatchStatus(ctx, c.Client, mc, after); err != nil {
		return err
	}
	c.written.Store(after)
	c.Recorder.Eventf(after, nil, corev1.EventTypeWarning, served.ReasonDefinitionDeleted, "Leave", "%s", served.Kept(definition))
	return nil
}

func (c *Controller) letGo(ctx context.Context, mc *clusterv1beta1.MemberCluster) error {
	c.Judge.Forget(membership.OfMemberCluster(mc).Namespace)
	c.Turns.Forget(membership.OfMemberCluster(mc).Namespace)
	before := mc.DeepCopy()
	controllerutil.RemoveFinalizer(mc, clusterv1beta1.FinalizerMemberCluster)
	if err := c.Client.Patch(ctx, mc, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), kube.FieldOwner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("letting MemberCluster %s go: %w", mc.Name, err)
	}
	ctrl.LoggerFrom(ctx).Info("MemberCluster left")
	return nil
}
