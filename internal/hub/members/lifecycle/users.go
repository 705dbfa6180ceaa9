package lifecycle

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/history"
)

// NameUsers adds the users behind a new revocation and a new quarantine to the state of a member.
// Users without an attribution by the API server stay unknown.
func (c *Controller) NameUsers(ctx context.Context, record client.Object, before history.State, after *history.State) {
	annotations := record.GetAnnotations()
	if after.Revoked && !before.Revoked {
		after.RevokedBy = c.Audit.Known(ctx, policyRevoker, annotations[clusterv1beta1.AnnotationRevokedBy])
	}
	if after.Quarantined && !before.Quarantined {
		after.QuarantinedBy = c.Audit.Known(ctx, policyQuarantine, annotations[fleet.AnnotationQuarantinedBy])
	}
}
