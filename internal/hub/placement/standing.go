package placement

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// maxFailed is how many resources a status names per member.
const maxFailed = 10

// standing is how the Works of one member are, by what its agent has written into them.
type standing struct {
	applied, available verdict
	// reported is whether the agent has said in what the member differs.
	reported verdict
	// works: everything is available, or has been applied for so long that it counts as that.
	works bool
	// availableAt is when it will count as that; zero if time alone does not make it so.
	availableAt time.Time
	troubles
}

// verdict is one condition.
type verdict struct {
	status          metav1.ConditionStatus
	reason, message string
}

// application is when the hub saw that a generation of a Work was applied. A member's own clock does not count.
type application struct {
	generation int64
	at         time.Time
}

// Reasons of conditions.
const (
	reasonApplied        = "AllWorkHaveBeenApplied"
	reasonApplyPending   = "ApplyPending"
	reasonNotApplied     = "NotAllWorkHaveBeenApplied"
	reasonAvailable      = "AllWorkAreAvailable"
	reasonNotAvailable   = "NotAllWorkAreAvailable"
	reasonAvailableLater = "AvailabilityPending"
	reasonUntrackable    = "NotAllWorkAreAvailabilityTrackable"
	reasonReported       = "AllWorkHaveBeenCompared"
	reasonNotReported    = "NotAllWorkHaveBeenCompared"
	reasonReportPending  = "ComparisonPending"
)

// stand rolls up the Works of one member. seen says since when the hub knows that a Work is applied.
func (h *holding) stand(seen func(*placement.Work) time.Time, settle time.Duration, now time.Time) standing {
	s := standing{
		reported:  verdict{metav1.ConditionTrue, reasonReported, ""},
		applied:   verdict{metav1.ConditionTrue, reasonApplied, ""},
		available: verdict{metav1.ConditionTrue, reasonAvailable, ""},
		works:     true,
	}
	for _, work := range h.works {
		applied, available := current(work, placement.ConditionApplied), current(work, placement.ConditionAvailable)
		s.troubles.add(work)
		if reportsOnly(work.Spec.ApplyStrategy) {
			s.reported = s.reported.worst(judge(current(work, placement.ConditionDiffReported), reasonNotReported, reasonReportPending, "waiting for the member's agent to compare it", work))
			s.works = s.works && s.reported.status == metav1.ConditionTrue
			continue
		}
		s.applied = s.applied.worst(judge(applied, reasonNotApplied, reasonApplyPending, "waiting for the member's agent to apply it", work))
		if s.applied.status != metav1.ConditionTrue {
			s.available = verdict{metav1.ConditionUnknown, reasonAvailableLater, "not everything is applied"}
			continue
		}
		s.available = s.available.worst(judge(available, reasonNotAvailable, reasonAvailableLater, "waiting for the member's agent to say whether it works", work))
		if available == nil || available.Reason != placement.ReasonNotTrackable {
			continue
		}
		if s.available.status == metav1.ConditionTrue {
			s.available = verdict{metav1.ConditionTrue, reasonUntrackable, "of some resources nobody can tell whether they work"}
		}
		if settled := seen(work).Add(settle); settled.After(now) {
			s.works = false
			if settled.After(s.availableAt) {
				s.availableAt = settled
			}
		}
	}
	if s.works = s.works && s.available.status == metav1.ConditionTrue; s.works {
		s.availableAt = time.Time{}
	}
	s.troubles.limit(maxFailed)
	return s
}

// current returns a condition of a Work if it is about what the Work says now.
func current(work *placement.Work, kind string) *metav1.Condition {
	condition := meta.FindStatusCondition(work.Status.Conditions, kind)
	if condition == nil || condition.ObservedGeneration < work.Generation || work.DeletionTimestamp != nil {
		return nil
	}
	return condition
}

func judge(c *metav1.Condition, failed, pending, waiting string, work *placement.Work) verdict {
	switch {
	case c == nil || c.Status == metav1.ConditionUnknown:
		if c != nil && c.Message != "" {
			waiting = c.Message
		}
		return verdict{metav1.ConditionUnknown, pending, waiting}
	case c.Status == metav1.ConditionTrue:
		return verdict{metav1.ConditionTrue, "", ""}
	}
	message := c.Message
	if named := failures(work); len(named) > 0 {
		message = fmt.Sprintf("%s: %s", nameOf(named[0].ResourceIdentifier), named[0].Condition.Message)
		if len(named) > 1 {
			message += fmt.Sprintf(" (and %d more)", len(named)-1)
		}
	}
	return verdict{metav1.ConditionFalse, failed, message}
}

// worst keeps the first that is false, then the first that is unknown.
func (v verdict) worst(other verdict) verdict {
	bad := map[metav1.ConditionStatus]int{metav1.ConditionUnknown: 1, metav1.ConditionFalse: 2}
	if bad[other.status] > bad[v.status] {
		return other
	}
	return v
}

// failures are the manifests of a Work of which its agent says that they are not compared, not applied, or else not available.
func failures(work *placement.Work) (failed []placement.FailedPlacement) {
	for _, m := range work.Status.ManifestConditions {
		for _, kind := range []string{placement.ConditionDiffReported, placement.ConditionApplied, placement.ConditionAvailable} {
			c := meta.FindStatusCondition(m.Conditions, kind)
			if c == nil || c.Status != metav1.ConditionFalse {
				continue
			}
			said := *c
			said.Message = clip(c.Message)
			failed = append(failed, placement.FailedPlacement{
				ResourceIdentifier: resourceOf(m.Identifier), Condition: said,
			})
			break
		}
	}
	return failed
}

func nameOf(r placement.ResourceIdentifier) string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}
