package cluster

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
)

// approval is the state of a Cluster's approval for deliveries.
type approval string

const (
	// approvalUnneeded: the workspace does not require approval.
	approvalUnneeded approval = ""
	// approvalGiven: a user has approved the Cluster.
	approvalGiven approval = "Approved"
	// approvalInherited: deliveries began before the workspace required approval, and continue. The
	// hub writes an approval for them.
	approvalInherited approval = "Inherited"
	approvalAwaited   approval = reasons.ApprovalRequired
)

// decideApproval decides whether a Cluster existed before its workspace required approval.
// Deliveries to the Cluster prove it, never a time.
func decideApproval(required bool, annotation string, delivered bool) approval {
	switch {
	case !required:
		return approvalUnneeded
	case annotation == membership.Approved:
		return approvalGiven
	case annotation == "" && delivered:
		return approvalInherited
	}
	return approvalAwaited
}

// observeWorkspace determines the state of the Cluster's approval, and the thresholds of its health
// check.
func (r *reconciliation) observeWorkspace(ctx context.Context) error {
	workspace, err := r.Workspaces.Named(ctx, r.cluster.Namespace)
	if err != nil {
		return err
	}
	required, health := approvesMembers(workspace), r.Config.Current().HealthCheck
	if workspace != nil {
		health = health.In(workspace)
	}
	r.o.healthCheck = health.Thresholds()
	annotation, delivered := r.cluster.Annotations[fleet.AnnotationApproved], r.o.delivered
	if required && annotation == "" && !delivered {
		var works placement.WorkList
		if err := r.Client.List(ctx, &works, client.InNamespace(r.o.Namespace), client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("listing the Works of %s: %w", r.o.Namespace, err)
		}
		delivered = len(works.Items) > 0
	}
	r.o.approval = decideApproval(required, annotation, delivered)
	r.o.denied, r.o.deniedBecause = annotation == membership.Denied, membership.DecidedBecause(r.cluster)
	return nil
}

// inheritApproval approves a Cluster with existing deliveries; they continue.
func (r *reconciliation) inheritApproval(ctx context.Context) error {
	if r.o.approval != approvalInherited {
		return nil
	}
	before := r.cluster.DeepCopy()
	metav1.SetMetaDataAnnotation(&r.cluster.ObjectMeta, fleet.AnnotationApproved, membership.Approved)
	if err := kube.Patch(ctx, r.Client, before, r.cluster); err != nil {
		return fmt.Errorf("approving Cluster %s/%s, which has deliveries: %w", r.cluster.Namespace, r.cluster.Name, err)
	}
	return nil
}

// awaitsApproval returns the message of a Cluster without approval.
func (o observed) awaitsApproval() string {
	state := fmt.Sprintf("this Cluster waits for approval, as label %s of workspace %s requires, and gets no deliveries before",
		fleet.LabelApproveMembers, o.Workspace)
	if o.denied {
		state = "an approver has denied new deliveries to this Cluster" + o.deniedBecause
	}
	return fmt.Sprintf("%s; to approve it: muster approve clusters %s/%s, or "+
		"kubectl -n %s annotate --overwrite cluster.fleet.cattle.io %s %s=true",
		state, o.Workspace, o.Name, o.Workspace, o.Name, fleet.AnnotationApproved)
}
