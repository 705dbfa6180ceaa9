package lifecycle

import (
	"context"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
)

// readReport reads the report of a member; nil if there is none. A report with the proof of another
// hub with a higher term is an error: this hub changes nothing any more.
func (c *Controller) readReport(ctx context.Context, m membernamespace.Member) (*clusterv1beta1.InternalMemberCluster, error) {
	report, err := m.ReadReport(ctx, c.Client)
	if err != nil || report == nil {
		return nil, err
	}
	return report, c.Identity.Check(report.Status.HubTerm, m.Namespace)
}
