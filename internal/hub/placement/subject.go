package placement

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// subject is a placement of either kind. A ClusterResourcePlacement has no namespace in its key.
type subject struct {
	client.Object
	kind   string
	key    types.NamespacedName
	spec   *placement.PlacementSpec
	status *placement.PlacementStatus
}

func ofCRP(crp *placement.ClusterResourcePlacement) subject {
	return subject{Object: crp, kind: "ClusterResourcePlacement", key: client.ObjectKeyFromObject(crp), spec: &crp.Spec, status: &crp.Status}
}

func ofRP(rp *placement.ResourcePlacement) subject {
	return subject{Object: rp, kind: "ResourcePlacement", key: client.ObjectKeyFromObject(rp), spec: &rp.Spec, status: &rp.Status}
}

// copy returns a subject that can be changed.
func (s subject) copy() subject {
	if crp, ok := s.Object.(*placement.ClusterResourcePlacement); ok {
		return ofCRP(crp.DeepCopy())
	}
	return ofRP(s.Object.(*placement.ResourcePlacement).DeepCopy())
}

func (s subject) String() string {
	if s.key.Namespace == "" {
		return s.kind + " " + s.key.Name
	}
	return s.kind + " " + s.key.String()
}

// read returns the placement of a key from the cache.
func (c *Controller) read(ctx context.Context, key types.NamespacedName) (subject, error) {
	if key.Namespace == "" {
		var crp placement.ClusterResourcePlacement
		err := c.Client.Get(ctx, key, &crp)
		return ofCRP(&crp), err
	}
	var rp placement.ResourcePlacement
	err := c.Client.Get(ctx, key, &rp)
	return ofRP(&rp), err
}

// unsupported names what a placement asks for that Muster does not do.
func unsupported(spec *placement.PlacementSpec) string {
	var fields []string
	say := func(is bool, field string) {
		if is {
			fields = append(fields, field)
		}
	}
	strategy := spec.Strategy
	say(strategy.Type == placement.RolloutExternal, "spec.strategy.type External: nothing is rolled out by another controller; changes roll out as with RollingUpdate")
	say(strategy.ReportBackStrategy != nil, "spec.strategy.reportBackStrategy: no status is copied back")
	say(spec.RevisionHistoryLimit != nil && *spec.RevisionHistoryLimit != defaultRevisions, "spec.revisionHistoryLimit: no revisions are kept")
	say(spec.StatusReportingScope != "" && spec.StatusReportingScope != statusOnPlacement, fmt.Sprintf("spec.statusReportingScope %s: status is on the placement only", spec.StatusReportingScope))
	return strings.Join(fields, "; ")
}

const (
	// defaultRevisions is the default of spec.revisionHistoryLimit.
	defaultRevisions = 10
	// statusOnPlacement is the scope that every placement has.
	statusOnPlacement = "ClusterScopeOnly"
)
