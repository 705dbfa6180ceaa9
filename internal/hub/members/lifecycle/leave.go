package lifecycle

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/history"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/servedkinds"
	"github.com/muster-fleet/muster/internal/kube"
)

// leave takes the next step for a deleted membership object. It requests the agent to leave, then
// ends its access and deletes the member namespace, then removes the finalizer. Kubernetes deletes
// the namespace in its own time.
func (c *Controller) leave(ctx context.Context, record client.Object, leaving Reconciliation) (ctrl.Result, error) {
	l := leaving.Leaver(c.Config.Current().ForceDeleteWaitTime)
	leaving.Forget(l.Namespace)
	if err := c.writeRemoval(ctx, record); err != nil {
		return ctrl.Result{}, err
	}
	kinds := []client.Object{record}
	if l.Report == nil && l.LeavePolicy == clusterv1beta1.LeaveDelete {
		kinds = append(kinds, &clusterv1beta1.InternalMemberCluster{}) // the report may have gone with its whole kind
	}
	definition, err := c.Kinds.Deleted(ctx, kinds...)
	if err != nil {
		return ctrl.Result{}, err
	}
	if definition = cmp.Or(definition, l.Definition); definition != "" {
		return ctrl.Result{}, c.keep(ctx, record, leaving.Kept(reasons.DefinitionDeleted, servedkinds.Kept(definition)),
			servedkinds.Kept(definition))
	}
	if l.Kept != "" {
		return ctrl.Result{RequeueAfter: l.KeptRetry}, leaving.Report(ctx, Departure{Message: "leaving waits: " + l.Kept})
	}
	now := c.Clock.Now()
	departure := l.Depart(now)
	if departure.Step == WaitForAgent {
		if err := leaving.AskToLeave(ctx); err != nil {
			return ctrl.Result{}, err
		}
		if err := leaving.Report(ctx, departure); err != nil {
			return ctrl.Result{}, err
		}
		return kube.At(departure.Deadline, now), nil
	}
	if departure.Step == RemoveNamespace {
		if err := c.removeNamespace(ctx, record, departure, leaving.Access()); err != nil {
			return ctrl.Result{}, err
		}
		if stays := l.agentStays(); stays != "" && departure.Unanswered == "" {
			c.Recorder.Eventf(record, nil, corev1.EventTypeWarning, reasons.AgentStays, "Leave", "%s", stays)
		}
	}
	if l.NamespaceState == membernamespace.NamespaceOurs || l.NamespaceState == membernamespace.NamespaceTerminating {
		if err := l.Release(ctx, c.Client, c.Live); err != nil {
			return ctrl.Result{}, err
		}
	}
	if l.Leftovers != "" { // without its finalizer the hub could not report the leftovers any more
		c.Liveness.Forget(l.Namespace)
		return ctrl.Result{}, leaving.Report(ctx, Departure{Message: "it has left; " + l.Leftovers})
	}
	return ctrl.Result{}, c.removeFinalizer(ctx, record)
}

// keep writes the cause why a membership object stays during the deletion of its whole kind.
func (c *Controller) keep(ctx context.Context, record, after client.Object, message string) error {
	if err := c.WriteStatus(ctx, record, after); err != nil || after.GetResourceVersion() == record.GetResourceVersion() {
		return err
	}
	c.Recorder.Eventf(after, nil, corev1.EventTypeWarning, reasons.DefinitionDeleted, "Leave", "%s", message)
	return nil
}

// removeNamespace ends the access of the agent at once and deletes the member namespace.
func (c *Controller) removeNamespace(ctx context.Context, record client.Object, departure Departure, access client.Object) error {
	member := membernamespace.Of(record)
	if departure.Unanswered != "" {
		message, err := c.writeLeftovers(ctx, member, departure.Unanswered)
		if err != nil {
			return err
		}
		c.Recorder.Eventf(record, nil, corev1.EventTypeWarning, reasons.ForcedLeave, "Leave", "%s", message)
	}
	if err := kube.Delete(ctx, c.Client, access); err != nil {
		return err
	}
	return member.DeleteNamespace(ctx, c.Client, c.Live)
}

// writeLeftovers stores a ConfigMap about a member removed without its agent's answer, and returns
// the message. The ConfigMap outlives the membership object.
func (c *Controller) writeLeftovers(ctx context.Context, member membernamespace.Member, unanswered string) (string, error) {
	placed, err := member.Placed(ctx, c.Live)
	if err != nil {
		return "", err
	}
	record, name := "MemberCluster "+member.Name, "left-"+member.Name
	if member.Workspace != "" {
		// Clusters of several workspaces may share a name.
		record, name = "Cluster "+member.Workspace+"/"+member.Name, "left-"+member.Namespace
	}
	message := fmt.Sprintf("The agent of %s %s; its access was revoked. Workloads on the cluster keep running.",
		record, unanswered)
	leftovers := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.SystemNamespace, Name: name, Labels: map[string]string{fleet.LabelManaged: "true"}},
		Data:       map[string]string{"uid": string(member.UID), "message": message, "placed": strings.Join(placed, "\n")},
	}
	return message, kube.Ensure(ctx, c.Client, leftovers)
}

func (c *Controller) removeFinalizer(ctx context.Context, record client.Object) error {
	c.Liveness.Forget(membernamespace.Of(record).Namespace)
	c.Identity.Forget(membernamespace.Of(record).Namespace)
	if err := c.ReadmitContents(ctx, membernamespace.Of(record).Namespace, ""); err != nil {
		return err
	}
	c.moves.Forget(client.ObjectKeyFromObject(record).String())
	if err := c.unmarkWorkspace(ctx, record); err != nil {
		return err
	}
	before := kube.Whole(record)
	controllerutil.RemoveFinalizer(record, c.finalizer)
	err := kube.Patch(ctx, c.Client, before, record)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the finalizer of %s: %w", kube.Describe(c.Client.Scheme(), record), err)
	}
	ctrl.LoggerFrom(ctx).Info("Member left")
	c.Notify.Tell(record, string(membership.AgentLeft), history.Change{
		Reason: clusterv1beta1.HistoryLeft, Message: "the member has left the fleet, and the hub has ended its access",
	})
	return nil
}
