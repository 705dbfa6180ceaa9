package placement

import (
	"context"
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	kindCRP = "ClusterResourcePlacement"
	kindRP  = "ResourcePlacement"
)

// genericPlacement is a placement of either kind. The key of a ClusterResourcePlacement has no
// namespace.
type genericPlacement struct {
	client.Object
	kind   string
	key    types.NamespacedName
	spec   *placement.PlacementSpec
	status *placement.PlacementStatus
}

func ofCRP(crp *placement.ClusterResourcePlacement) genericPlacement {
	return genericPlacement{Object: crp, kind: kindCRP, key: client.ObjectKeyFromObject(crp), spec: &crp.Spec, status: &crp.Status}
}

func ofRP(rp *placement.ResourcePlacement) genericPlacement {
	return genericPlacement{Object: rp, kind: kindRP, key: client.ObjectKeyFromObject(rp), spec: &rp.Spec, status: &rp.Status}
}

// copy returns a copy for changes.
func (s genericPlacement) copy() genericPlacement {
	if crp, ok := s.Object.(*placement.ClusterResourcePlacement); ok {
		return ofCRP(crp.DeepCopy())
	}
	return ofRP(s.Object.(*placement.ResourcePlacement).DeepCopy())
}

func (s genericPlacement) String() string { return kube.Name(s.kind, s.key.Namespace, s.key.Name) }

// get reads a placement from the cache.
func (c *Controller) get(ctx context.Context, key types.NamespacedName) (genericPlacement, error) {
	if key.Namespace == "" {
		var crp placement.ClusterResourcePlacement
		err := c.Client.Get(ctx, key, &crp)
		return ofCRP(&crp), err
	}
	var rp placement.ResourcePlacement
	err := c.Client.Get(ctx, key, &rp)
	return ofRP(&rp), err
}

// reportsNothing reports whether a reportBackStrategy matches Muster's only behavior: no status
// is copied back.
func reportsNothing(strategy []byte) bool {
	var is struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(strategy, &is) == nil && is.Type == "Disabled"
}

// unsupportedFields names the unimplemented fields of a placement.
func unsupportedFields(strategy placement.RolloutStrategy) string {
	var fields []string
	if back := strategy.ReportBackStrategy; back != nil && !reportsNothing(back.Raw) {
		fields = append(fields, "spec.strategy.reportBackStrategy: no status is copied back")
	}
	return strings.Join(fields, "; ")
}
