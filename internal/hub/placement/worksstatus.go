package placement

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/placement/selection"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// maxFailed limits the resources named per member for each kind of trouble.
	maxFailed = 10
	// maxDifferences limits the differences of a resource in a status. maxValue limits the length
	// of a path or a value in them.
	maxDifferences, maxValue = 10, 128
)

// worksStatus is the report of a member's agent about its Works.
type worksStatus struct {
	applied, available, diffReported condition
	// works: the agent knows of no unavailable object. ready: in addition, objects without
	// trackable availability have been applied long enough to count as available. readyAt is the
	// time when they count; zero if not by time alone.
	works, ready bool
	readyAt      time.Time
	resourceStatus
}

// resourceStatus holds the failed resources of a member, the drifted ones, and the different but
// unapplied ones.
type resourceStatus struct {
	failed  []placement.FailedPlacement
	drifted []placement.DriftedPlacement
	diffed  []placement.DiffedPlacement
}

// status rolls up the Works of one member. appliedSince returns the time when the hub first saw a
// Work applied.
func (w *currentWorks) status(appliedSince func(*placement.Work) time.Time, period time.Duration, now time.Time) worksStatus {
	s := worksStatus{
		diffReported: condition{metav1.ConditionTrue, reasons.AllWorkHaveDiffReported, ""},
		applied:      condition{metav1.ConditionTrue, reasons.AllWorkHaveBeenApplied, ""},
		available:    condition{metav1.ConditionTrue, reasons.AllWorkAreAvailable, ""},
		ready:        true,
	}
	for _, work := range w.works {
		s.resourceStatus.add(work)
		if reportsDiff(work.Spec.ApplyStrategy) {
			s.diffReported = s.diffReported.worst(conditionOf(work, placement.ConditionDiffReported, reasons.NotAllWorkHaveDiffReported,
				reasons.DiffReportingPending,
				"waiting for the member's agent to compare it"))
			s.ready = s.ready && s.diffReported.status == metav1.ConditionTrue
			continue
		}
		s.applied = s.applied.worst(conditionOf(work, placement.ConditionApplied, reasons.NotAllWorkHaveBeenApplied, reasons.ApplyPending,
			"waiting for the member's agent to apply it"))
		if s.applied.status != metav1.ConditionTrue {
			s.available = condition{} // as in KubeFleet's API there is no such condition before everything is applied
			continue
		}
		s.available = s.available.worst(conditionOf(work, placement.ConditionAvailable, reasons.NotAllWorkAreAvailable,
			reasons.ResourceAvailableUnknown,
			"waiting for the member's agent to report its availability"))
		if available := currentCondition(work, placement.ConditionAvailable); available == nil ||
			available.Reason != placement.ReasonNotTrackable {
			continue
		}
		if s.available.status == metav1.ConditionTrue {
			s.available = condition{metav1.ConditionTrue, reasons.NotAllWorkAreAvailabilityTrackable,
				"the availability of some resources cannot be checked"}
		}
		if at := appliedSince(work).Add(period); at.After(now) {
			s.ready = false
			if at.After(s.readyAt) {
				s.readyAt = at
			}
		}
	}
	s.works = s.available.status == metav1.ConditionTrue && s.diffReported.status == metav1.ConditionTrue
	if s.ready = s.ready && s.works; s.ready {
		s.readyAt = time.Time{}
	}
	s.resourceStatus.limit(maxFailed)
	return s
}

// currentCondition returns a condition of a Work if it belongs to the Work's generation.
func currentCondition(work *placement.Work, kind string) *metav1.Condition {
	c := meta.FindStatusCondition(work.Status.Conditions, kind)
	if c == nil || c.ObservedGeneration < work.Generation || work.DeletionTimestamp != nil {
		return nil
	}
	return c
}

// conditionOf returns the condition of a member for one of its Works, with the reason for False
// or Unknown.
func conditionOf(work *placement.Work, kind, failed, pending, waiting string) condition {
	c := currentCondition(work, kind)
	switch {
	case c == nil || c.Status == metav1.ConditionUnknown:
		if c != nil && c.Message != "" {
			waiting = c.Message
		}
		return condition{metav1.ConditionUnknown, pending, waiting}
	case c.Status == metav1.ConditionTrue:
		return condition{metav1.ConditionTrue, "", ""}
	}
	message := c.Message
	if all := failedManifests(work); len(all) > 0 {
		message = andMore(fmt.Sprintf("%s: %s", nameOf(all[0].ResourceIdentifier), all[0].Condition.Message), len(all)-1)
	}
	return condition{metav1.ConditionFalse, failed, message}
}

// withEnvelopes adds the hub's knowledge of envelopes. Resources get the name of their envelope,
// and refused manifests count as not applied. All members lack them alike, so they make no member
// less ready.
func (s worksStatus) withEnvelopes(resources selection.Resources) worksStatus {
	name := func(r *placement.ResourceIdentifier) {
		if envelope, wrapped := resources.Envelopes[*r]; wrapped {
			r.Envelope = &envelope
		}
	}
	for i := range s.failed {
		name(&s.failed[i].ResourceIdentifier)
	}
	for i := range s.drifted {
		name(&s.drifted[i].ResourceIdentifier)
	}
	for i := range s.diffed {
		name(&s.diffed[i].ResourceIdentifier)
	}
	if len(resources.Refused) == 0 {
		return s
	}
	s.failed = append(slices.Clone(resources.Refused), s.failed...)
	s.limit(maxFailed)
	first := resources.Refused[0]
	envelope := kube.Name(first.Envelope.Type, first.Envelope.Namespace, first.Envelope.Name)
	message := andMore(envelope+": "+first.Condition.Message, len(resources.Refused)-1)
	s.applied = condition{metav1.ConditionFalse, reasons.NotAllWorkHaveBeenApplied, message}
	s.diffReported = condition{metav1.ConditionFalse, reasons.NotAllWorkHaveDiffReported, message}
	s.available = condition{}
	return s
}

// failedManifests returns the manifests of a Work reported by its agent as not compared, not
// applied or not available.
func failedManifests(work *placement.Work) (failed []placement.FailedPlacement) {
	for _, m := range work.Status.ManifestConditions {
		for _, kind := range []string{placement.ConditionDiffReported, placement.ConditionApplied, placement.ConditionAvailable} {
			if c := meta.FindStatusCondition(m.Conditions, kind); c != nil && c.Status == metav1.ConditionFalse {
				clipped := *c
				clipped.Message = clip(c.Message)
				failed = append(failed, placement.FailedPlacement{ResourceIdentifier: resourceOf(m.Identifier), Condition: clipped})
				break
			}
		}
	}
	return failed
}

func (r *resourceStatus) add(work *placement.Work) {
	r.failed = append(r.failed, failedManifests(work)...)
	for _, m := range work.Status.ManifestConditions {
		if d := m.DriftDetails; d != nil {
			r.drifted = append(r.drifted, placement.DriftedPlacement{
				ResourceIdentifier: resourceOf(m.Identifier), ObservationTime: d.ObservationTime, FirstDriftedObservedTime: d.FirstDriftedObservedTime,
				TargetClusterObservedGeneration: d.ObservedInMemberClusterGeneration, ObservedDrifts: d.ObservedDrifts,
			})
		}
		if d := m.DiffDetails; d != nil {
			r.diffed = append(r.diffed, placement.DiffedPlacement{
				ResourceIdentifier: resourceOf(m.Identifier), ObservationTime: d.ObservationTime, FirstDiffedObservedTime: d.FirstDiffedObservedTime,
				TargetClusterObservedGeneration: d.ObservedInMemberClusterGeneration, ObservedDiffs: d.ObservedDiffs,
			})
		}
	}
}

// limit keeps the first few of each kind.
func (r *resourceStatus) limit(most int) {
	r.failed = r.failed[:min(len(r.failed), most)]
	r.drifted = r.drifted[:min(len(r.drifted), most)]
	r.diffed = r.diffed[:min(len(r.diffed), most)]
}

// describeDiffs returns the number of differing resources in words; "" if there are none.
func (r *resourceStatus) describeDiffs() string {
	if len(r.diffed) == 0 {
		return ""
	}
	first := nameOf(r.diffed[0].ResourceIdentifier)
	switch n := len(r.diffed); n {
	case maxFailed:
		return first + " and others differ"
	case 1:
		return first + " differs"
	default:
		return fmt.Sprintf("%s and %d more differ", first, n-1)
	}
}

func resourceOf(of placement.WorkResourceIdentifier) placement.ResourceIdentifier {
	return placement.ResourceIdentifier{Group: of.Group, Version: of.Version, Kind: of.Kind, Namespace: of.Namespace, Name: of.Name}
}

func nameOf(r placement.ResourceIdentifier) string { return kube.Name(r.Kind, r.Namespace, r.Name) }

// truncateDetails cuts the differences reported by an agent to a bounded length before the hub
// caches them.
func truncateDetails(m *placement.ManifestCondition) {
	if m.DriftDetails != nil {
		m.DriftDetails.ObservedDrifts = truncate(m.DriftDetails.ObservedDrifts)
	}
	if m.DiffDetails != nil {
		m.DiffDetails.ObservedDiffs = truncate(m.DiffDetails.ObservedDiffs)
	}
}

func truncate(details []placement.PatchDetail) (short []placement.PatchDetail) {
	for _, d := range details[:min(len(details), maxDifferences)] {
		short = append(short, placement.PatchDetail{
			Path: kube.Clip(d.Path, maxValue), ValueInHub: kube.Clip(d.ValueInHub, maxValue), ValueInMember: kube.Clip(d.ValueInMember, maxValue),
		})
	}
	return short
}
