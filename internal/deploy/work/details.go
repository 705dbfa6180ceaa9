package work

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

// details returns the differences of an outcome as the status shows them: drift of an applied
// object, diff of any other. The time of the first observation comes from the previous status.
func (o outcome) details(was placement.ManifestCondition, now metav1.Time) (*placement.DriftDetails, *placement.DiffDetails) {
	if len(o.differences) == 0 {
		return nil, nil
	}
	if o.reason == reasons.Drifted || o.reason == reasons.ManifestApplied {
		drift := placement.DriftDetails{
			ObservationTime: now, FirstDriftedObservedTime: now, ObservedInMemberClusterGeneration: o.generation, ObservedDrifts: o.differences,
		}
		if old := was.DriftDetails; old != nil {
			drift.FirstDriftedObservedTime = old.FirstDriftedObservedTime
			if old.ObservedInMemberClusterGeneration == o.generation && slices.Equal(old.ObservedDrifts, o.differences) {
				drift.ObservationTime = old.ObservationTime
			}
		}
		return &drift, nil
	}
	diff := placement.DiffDetails{ObservationTime: now, FirstDiffedObservedTime: now, ObservedDiffs: o.differences}
	if o.differences[0].Path != wholeObject {
		diff.ObservedInMemberClusterGeneration = ptr.To(o.generation)
	}
	if old := was.DiffDetails; old != nil {
		diff.FirstDiffedObservedTime = old.FirstDiffedObservedTime
		if ptr.Equal(old.ObservedInMemberClusterGeneration, diff.ObservedInMemberClusterGeneration) &&
			slices.Equal(old.ObservedDiffs, o.differences) {
			diff.ObservationTime = old.ObservationTime
		}
	}
	return nil, &diff
}
