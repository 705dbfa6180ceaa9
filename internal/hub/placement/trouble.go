package placement

import (
	"fmt"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// maxDifferences is how many differences of a resource a status names, maxValue how long a path or a value in it may be.
	maxDifferences, maxValue = 10, 128
)

// troubles are the resources on a member that need attention: those that failed, that were changed there, and that differ and are not
// applied.
type troubles struct {
	failed  []placement.FailedPlacement
	drifted []placement.DriftedPlacement
	diffed  []placement.DiffedPlacement
}

func (t *troubles) add(work *placement.Work) {
	t.failed = append(t.failed, failures(work)...)
	for _, m := range work.Status.ManifestConditions {
		if d := m.DriftDetails; d != nil {
			t.drifted = append(t.drifted, placement.DriftedPlacement{
				ResourceIdentifier: resourceOf(m.Identifier), ObservationTime: d.ObservationTime, FirstDriftedObservedTime: d.FirstDriftedObservedTime,
				TargetClusterObservedGeneration: d.ObservedInMemberClusterGeneration, ObservedDrifts: d.ObservedDrifts,
			})
		}
		if d := m.DiffDetails; d != nil {
			t.diffed = append(t.diffed, placement.DiffedPlacement{
				ResourceIdentifier: resourceOf(m.Identifier), ObservationTime: d.ObservationTime, FirstDiffedObservedTime: d.FirstDiffedObservedTime,
				TargetClusterObservedGeneration: d.ObservedInMemberClusterGeneration, ObservedDiffs: d.ObservedDiffs,
			})
		}
	}
}

// limit keeps the first few of each.
func (t *troubles) limit(most int) {
	t.failed = t.failed[:min(len(t.failed), most)]
	t.drifted = t.drifted[:min(len(t.drifted), most)]
	t.diffed = t.diffed[:min(len(t.diffed), most)]
}

// differing says in words how many resources differ; "" if none does.
func (t *troubles) differing() string {
	switch n := len(t.diffed); n {
	case 0:
		return ""
	case maxFailed:
		return fmt.Sprintf("%s and others differ", nameOf(t.diffed[0].ResourceIdentifier))
	case 1:
		return fmt.Sprintf("%s differs", nameOf(t.diffed[0].ResourceIdentifier))
	default:
		return fmt.Sprintf("%s and %d more differ", nameOf(t.diffed[0].ResourceIdentifier), n-1)
	}
}

func resourceOf(of placement.WorkResourceIdentifier) placement.ResourceIdentifier {
	return placement.ResourceIdentifier{Group: of.Group, Version: of.Version, Kind: of.Kind, Namespace: of.Namespace, Name: of.Name}
}

// shorten cuts what an agent says of differences to a bounded length, before the hub keeps it.
func shorten(m *placement.ManifestCondition) {
	if m.DriftDetails != nil {
		m.DriftDetails.ObservedDrifts = bounded(m.DriftDetails.ObservedDrifts)
	}
	if m.DiffDetails != nil {
		m.DiffDetails.ObservedDiffs = bounded(m.DiffDetails.ObservedDiffs)
	}
}

func bounded(details []placement.PatchDetail) []placement.PatchDetail {
	cut := func(text string) string { return kube.Clip(text, maxValue) }
	var short []placement.PatchDetail
	for _, d := range details[:min(len(details), maxDifferences)] {
		short = append(short, placement.PatchDetail{Path: cut(d.Path), ValueInHub: cut(d.ValueInHub), ValueInMember: cut(d.ValueInMember)})
	}
	return short
}
