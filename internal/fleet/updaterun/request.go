package updaterun

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/kube"
)

// ApprovalRequest is the request to approve a stage of a staged update run, of either kind.
type ApprovalRequest struct {
	client.Object
	Kind   string
	Spec   *placement.ApprovalRequestSpec
	Status *placement.ApprovalRequestStatus
}

// NewApprovalRequest returns an empty request, of the kind for runs in this namespace.
func NewApprovalRequest(namespace, name string) (r ApprovalRequest) {
	object := metav1.ObjectMeta{Namespace: namespace, Name: name}
	if namespace == "" {
		r, _ = ApprovalRequestOf(&placement.ClusterApprovalRequest{ObjectMeta: object})
	} else {
		r, _ = ApprovalRequestOf(&placement.ApprovalRequest{ObjectMeta: object})
	}
	return r
}

// ApprovalRequestOf returns an object as a request, if it is one.
func ApprovalRequestOf(o client.Object) (ApprovalRequest, bool) {
	switch o := o.(type) {
	case *placement.ClusterApprovalRequest:
		return ApprovalRequest{o, "ClusterApprovalRequest", &o.Spec, &o.Status}, true
	case *placement.ApprovalRequest:
		return ApprovalRequest{o, "ApprovalRequest", &o.Spec, &o.Status}, true
	}
	return ApprovalRequest{}, false
}

// Approved reports whether a user has approved the present generation of the request.
func (r ApprovalRequest) Approved() bool {
	c := r.approval()
	return c != nil && c.ObservedGeneration == r.GetGeneration()
}

// Outdated reports whether a user has approved another generation of the request.
func (r ApprovalRequest) Outdated() bool {
	c := r.approval()
	return c != nil && c.ObservedGeneration != r.GetGeneration()
}

// approval returns the condition of an approval, or nil.
func (r ApprovalRequest) approval() *metav1.Condition {
	c := meta.FindStatusCondition(r.Status.Conditions, placement.ConditionApproved)
	if c == nil || c.Status != metav1.ConditionTrue {
		return nil
	}
	return c
}

// CheckOwner returns an error unless the run, of this kind, owns the request. The hub ignores other
// requests.
func (r ApprovalRequest) CheckOwner(kind string, run client.Object) error {
	if metav1.IsControlledBy(r, run) {
		return nil
	}
	return fmt.Errorf("%s does not belong to %s, and the hub ignores it: delete it, and the hub creates another",
		kube.Name(r.Kind, r.GetNamespace(), r.GetName()), kube.Name(kind, run.GetNamespace(), run.GetName()))
}

// Approve approves the request, with the message of the condition. Another client may not have
// written the request since it was read: the patch replaces the list of conditions as a whole.
func (r ApprovalRequest) Approve(ctx context.Context, c client.Client, message string) error {
	before := r.DeepCopyObject().(client.Object)
	meta.SetStatusCondition(&r.Status.Conditions, metav1.Condition{
		Type: placement.ConditionApproved, Status: metav1.ConditionTrue, Reason: placement.ConditionApproved,
		Message: message, ObservedGeneration: r.GetGeneration(),
	})
	return c.Status().Patch(ctx, r.Object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}
