package registration

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
)

// quarantinedKeyOf indexes quarantined Clusters by the key of their agent.
func quarantinedKeyOf(o client.Object) []string {
	key := o.GetAnnotations()[fleet.AnnotationAgentKey]
	if key == "" || !membership.Quarantined(o) {
		return nil
	}
	return []string{key}
}

// observeQuarantine checks whether the key of a request belongs to another, quarantined Cluster of
// the workspace. Its agent must not escape as a new member. If the key is the Cluster's own, only
// the annotation of the Cluster decides. Other workspaces do not count, because their tenants write
// the annotations of their Clusters.
func (c *Controller) observeQuarantine(ctx context.Context, r *fleet.ClusterRegistration, o *observation) error {
	if o.key == "" || slices.ContainsFunc(o.matches, func(v clusterView) bool { return v.ownKey }) {
		return nil
	}
	var list fleet.ClusterList
	if err := c.Client.List(ctx, &list, client.InNamespace(r.Namespace), client.MatchingFields{indexQuarantinedKey: o.key},
		client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the quarantined Clusters with the key of ClusterRegistration %s/%s: %w", r.Namespace, r.Name, err)
	}
	if len(list.Items) > 0 {
		o.quarantined = list.Items[0].Name
	}
	return nil
}
