package lifecycle

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	muster "github.com/muster-fleet/muster/api/muster/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// refusedRemoval is the pause after a refusal to delete a member. A user must change a right or a
// policy, and the hub gets no event about it.
const refusedRemoval = time.Hour

// CleanUp takes the step of the plan, after the write of the status. It returns the wait until the
// next attempt; zero if an event leads to one.
func (c *Controller) CleanUp(ctx context.Context, record client.Object, o Observed) (time.Duration, error) {
	if lag := c.expected.Await(client.ObjectKeyFromObject(record), record); lag > 0 {
		return 0, nil // the event of the status enqueues it
	}
	switch o.Cleanup.step {
	case cleanupTaint:
		at := c.Clock.Now().UTC().Format(time.RFC3339)
		if err := c.writeLost(ctx, record, map[string]any{fleet.AnnotationLost: at}); err != nil {
			return 0, err
		}
		ctrl.LoggerFrom(ctx).Info("Member tainted", "reason", o.noHeartbeat())
		c.Recorder.Eventf(record, nil, corev1.EventTypeWarning, reasons.LostTainted, "Taint",
			"%s: the member gets nothing new until its next heartbeat", o.noHeartbeat())
	case cleanupUntaint:
		if err := c.writeLost(ctx, record, map[string]any{fleet.AnnotationLost: nil, fleet.AnnotationLostRemoved: nil}); err != nil {
			return 0, err
		}
		ctrl.LoggerFrom(ctx).Info("Taint of a member without heartbeats removed")
		c.Recorder.Eventf(record, nil, corev1.EventTypeNormal, reasons.LostTaintRemoved, "Taint",
			"the member sends heartbeats again, or the settings no longer taint members without heartbeats")
	case cleanupRemove:
		return c.removeLost(ctx, record, o)
	case cleanupNone:
	}
	return 0, nil
}

// writeLost sets or removes the marks on a member, unless another client has changed it meanwhile.
func (c *Controller) writeLost(ctx context.Context, record client.Object, marks map[string]any) error {
	after := kube.Whole(record)
	annotations := after.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	for key, value := range marks {
		if value == nil {
			delete(annotations, key)
		} else {
			annotations[key] = value.(string)
		}
	}
	after.SetAnnotations(annotations)
	if err := kube.Patch(ctx, c.Client, record, after); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("marking %s, which has sent no heartbeat: %w", kube.Describe(c.Client.Scheme(), record), err)
	}
	c.expected.Expect(client.ObjectKeyFromObject(after), after)
	return nil
}

// removeLost deletes a lost member. The cache may lag behind a heartbeat or the change of a user,
// so both are read from the API server first. The mark precedes the deletion: with it the departure
// keeps all deliveries.
func (c *Controller) removeLost(ctx context.Context, record client.Object, o Observed) (time.Duration, error) {
	if current, err := c.upToDate(ctx, record, o); err != nil || !current {
		return o.Liveness.Budget, err
	}
	reason := o.WithCleanup(o.noHeartbeat())
	marked := kube.Whole(record)
	if _, done := record.GetAnnotations()[fleet.AnnotationLostRemoved]; !done {
		annotations := marked.GetAnnotations() // it has the mark of the taint
		annotations[fleet.AnnotationLostRemoved] = reason
		marked.SetAnnotations(annotations)
		if err := kube.Patch(ctx, c.Client, record, marked); err != nil {
			return 0, fmt.Errorf("marking %s for its removal: %w", kube.Describe(c.Client.Scheme(), record), err)
		}
	}
	uid, version := marked.GetUID(), marked.GetResourceVersion()
	err := c.Client.Delete(ctx, marked, client.Preconditions{UID: &uid, ResourceVersion: &version})
	switch {
	case apierrors.IsNotFound(err):
		return 0, nil
	case apierrors.IsForbidden(err):
		c.Recorder.Eventf(record, nil, corev1.EventTypeWarning, reasons.LostKept, "Leave", "the API server refuses to delete the member: %v", err)
		return refusedRemoval, nil
	case err != nil:
		return 0, fmt.Errorf("deleting %s, which has sent no heartbeat: %w", kube.Describe(c.Client.Scheme(), record), err)
	}
	ctrl.LoggerFrom(ctx).Info("Member removed", "reason", reason)
	c.Recorder.Eventf(record, nil, corev1.EventTypeWarning, reasons.LostRemoved, "Leave", "the hub removes the member: %s", reason)
	return 0, nil
}

// upToDate reports whether the API server has the member, its Lease and its report as this process
// knows them.
func (c *Controller) upToDate(ctx context.Context, record client.Object, o Observed) (bool, error) {
	version, err := c.versionOf(ctx, c.Live, client.ObjectKeyFromObject(record), record)
	if err != nil || version != record.GetResourceVersion() {
		return false, err
	}
	for name, object := range map[string]client.Object{
		naming.HeartbeatLease: &coordinationv1.Lease{}, o.Name: &clusterv1beta1.InternalMemberCluster{},
	} {
		key := types.NamespacedName{Namespace: o.Namespace, Name: name}
		known, err := c.versionOf(ctx, c.Client, key, object)
		if err != nil {
			return false, err
		}
		if live, err := c.versionOf(ctx, c.Live, key, object); err != nil || live != known {
			return false, err
		}
	}
	return true, nil
}

// versionOf returns the version of an object; "" if there is none.
func (c *Controller) versionOf(ctx context.Context, reader client.Reader, key types.NamespacedName, kind client.Object) (string, error) {
	object := kube.Whole(kind)
	if err := reader.Get(ctx, key, object); apierrors.IsNotFound(err) {
		return "", nil
	} else if err != nil {
		return "", fmt.Errorf("reading %s before the removal of a member: %w", key, err)
	}
	return object.GetResourceVersion(), nil
}

// noHeartbeat returns the cause of a taint or removal.
func (o Observed) noHeartbeat() string {
	return "no heartbeat since " + o.LastSeen().UTC().Format(time.RFC3339)
}

// writeRemoval writes the AuditEntry about a departure begun by the hub.
func (c *Controller) writeRemoval(ctx context.Context, record client.Object) error {
	if !removedAsLost(record) {
		return nil
	}
	fact := c.fact(record, muster.AuditRemoved, string(record.GetUID()))
	fact.Spec.Message = fmt.Sprintf("the hub removed %s, and its deliveries stay on the member: %s", fact.Spec.Object.Name,
		record.GetAnnotations()[fleet.AnnotationLostRemoved])
	return c.Audit.Write(ctx, fact)
}
