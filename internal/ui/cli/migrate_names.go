package cli

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
)

// sayInvalidNames prints the Clusters with names that no agent can register.
func (m *migrator) sayInvalidNames(ctx context.Context, hub *checked) error {
	var clusters fleet.ClusterList
	if err := hub.List(ctx, &clusters); err != nil {
		return fmt.Errorf("looking for Clusters with names that Muster does not allow: %w", err)
	}
	for i := range clusters.Items {
		c := &clusters.Items[i]
		if len(validation.IsDNS1123Label(c.Name)) > 0 {
			m.progress.step("Cluster %s/%s has a name that no member can have: delete it, and create it as %s", c.Namespace, c.Name,
				naming.CleanCluster(c.Name))
		}
	}
	return nil
}
