package work

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/deploy/readiness"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
)

// conditionValue is one condition.
type conditionValue struct {
	status          metav1.ConditionStatus
	reason, message string
}

// describe computes the status of a Work. No other function sets this status.
func (c *Controller) describe(state State, work *placement.Work, appliedWork *placement.AppliedWork, p *pass,
	left applied.Remaining) placement.WorkStatus {
	status := *work.Status.DeepCopy()
	now := metav1.NewTime(c.Clock.Now())
	set := func(conditions *[]metav1.Condition, kind string, v conditionValue) {
		meta.SetStatusCondition(conditions, metav1.Condition{
			Type: kind, Status: v.status, Reason: v.reason, Message: v.message, ObservedGeneration: work.Generation, LastTransitionTime: now,
		})
	}
	kind := placement.ConditionApplied
	if state != Removing && state != Abandoning && strategyOf(work.Spec.ApplyStrategy).reports {
		kind = placement.ConditionDiffReported
	}
	not := func(reason, message string) {
		set(&status.Conditions, kind, conditionValue{metav1.ConditionFalse, reason, message})
	}
	switch state {
	case Applying:
		describeManifests(&status, p, set, now)
	case Foreign:
		not(reasons.AppliedWorkOfAnotherHub, fmt.Sprintf("this cluster has an AppliedWork %s of member namespace %s: place under another name, "+
			"or delete that one", appliedWork.Name, appliedWork.Spec.WorkNamespace))
	case Misdirected:
		not(reasons.WorkOfAnotherMember,
			fmt.Sprintf("it is labelled for %s, and nothing of it is applied on this member: delete it, or take the labels off",
				delivery.OtherRecipient(work.Labels, c.Namespace, c.Report)))
	case Clearing:
		not(reasons.AppliedWorkBeingDeleted,
			fmt.Sprintf("AppliedWork %s is being deleted on the member; the manifests are applied again when it is gone", appliedWork.Name))
	case Removing, Abandoning:
		not(reasons.Removing, left.String())
	case Removed, Gone:
	}
	return status
}

// condition computes one type of condition, for a manifest and for all.
type condition struct {
	kind string
	of   func(manifestStatus) conditionValue
	all  func(*pass) conditionValue
}

var (
	conditionsOfApplying = []condition{
		{placement.ConditionApplied, manifestStatus.applied, (*pass).applied},
		{placement.ConditionAvailable, manifestStatus.available, (*pass).available},
	}
	conditionsOfReporting = []condition{{placement.ConditionDiffReported, manifestStatus.reported, (*pass).reported}}
)

// describeManifests sets the conditions of the manifests, and their summary.
func describeManifests(status *placement.WorkStatus, p *pass, set func(*[]metav1.Condition, string, conditionValue), now metav1.Time) {
	these, others := conditionsOfApplying, conditionsOfReporting
	if p.strategy.reports {
		these, others = others, these
	}
	drop := func(conditions *[]metav1.Condition) {
		for _, other := range others {
			meta.RemoveStatusCondition(conditions, other.kind)
		}
	}
	before := map[key]placement.ManifestCondition{}
	for _, old := range status.ManifestConditions {
		before[keyOf(old.Identifier)] = old
	}
	status.ManifestConditions = make([]placement.ManifestCondition, 0, len(p.manifests))
	for _, m := range p.manifests {
		was, is := before[m.key], p.manifestStatus[m.ordinal]
		one := placement.ManifestCondition{Identifier: m.identifier(), Conditions: slices.Clone(was.Conditions)}
		drop(&one.Conditions)
		for _, this := range these {
			set(&one.Conditions, this.kind, this.of(is))
		}
		one.DriftDetails, one.DiffDetails = is.outcome.details(was, now)
		status.ManifestConditions = append(status.ManifestConditions, one)
	}
	drop(&status.Conditions)
	for _, this := range these {
		set(&status.Conditions, this.kind, this.all(p))
	}
}

func (s manifestStatus) applied() conditionValue {
	if s.outcome.failed() {
		return conditionValue{metav1.ConditionFalse, s.outcome.reason, s.outcome.message}
	}
	if ended := s.outcome.ran.Ended; ended != "" {
		return conditionValue{metav1.ConditionTrue, reasons.ManifestApplied,
			"the Job has run (" + ended + ") and is gone; other content runs again"}
	}
	if found := s.outcome.differences; len(found) > 0 {
		return conditionValue{metav1.ConditionTrue, reasons.ManifestApplied,
			"the object on the member matches the manifest, and besides " + listed(found)}
	}
	return conditionValue{metav1.ConditionTrue, reasons.ManifestApplied, "the object on the member matches the manifest"}
}

func (s manifestStatus) reported() conditionValue {
	if _, compared := s.outcome.compared(); !compared {
		return conditionValue{metav1.ConditionFalse, s.outcome.reason, s.outcome.message}
	}
	return conditionValue{metav1.ConditionTrue, s.outcome.reason, s.outcome.message}
}

func (s manifestStatus) available() conditionValue {
	ready := s.summary.readiness
	switch {
	case s.outcome.failed():
		return conditionValue{metav1.ConditionFalse, reasons.ManifestNotApplied, "it is not applied"}
	case s.outcome.ran.Ended == applied.JobFailed:
		return conditionValue{metav1.ConditionFalse, reasons.ManifestFailed, s.outcome.ran.Failure()}
	case s.outcome.ran.Ended != "":
		return conditionValue{metav1.ConditionTrue, reasons.ManifestAvailable, "the Job has run"}
	case ready.State == readiness.Failed, ready.State == readiness.Unknown:
		return conditionValue{metav1.ConditionFalse, reasons.ManifestFailed, s.unready()}
	case ready.State == readiness.Progressing, ready.State == readiness.Terminating:
		return conditionValue{metav1.ConditionFalse, reasons.ManifestNotAvailableYet, s.unready()}
	case ready.State == readiness.Untracked:
		return conditionValue{metav1.ConditionTrue, reasons.ManifestNotTrackable, ready.Message}
	}
	return conditionValue{metav1.ConditionTrue, reasons.ManifestAvailable, cmp.Or(ready.Message, "it works")}
}

// applied summarizes the condition Applied of all manifests.
func (p *pass) applied() conditionValue {
	text, failed := p.summarizeAll(manifestStatus.applied)
	switch {
	case failed > 0:
		return conditionValue{metav1.ConditionFalse, placement.ReasonSomeNotApplied,
			fmt.Sprintf("%d of %d not applied: %s", failed, len(p.manifests), text)}
	case len(p.left) > 0:
		return conditionValue{metav1.ConditionTrue, placement.ReasonAllApplied,
			"objects removed from the Work are not deleted yet: " + applied.Join(p.left)}
	}
	return conditionValue{metav1.ConditionTrue, placement.ReasonAllApplied,
		fmt.Sprintf("%d of %d applied", len(p.manifests), len(p.manifests))}
}

// reported summarizes the comparison of all manifests, and counts the differences.
func (p *pass) reported() conditionValue {
	if text, failed := p.summarizeAll(manifestStatus.reported); failed > 0 {
		return conditionValue{metav1.ConditionFalse, placement.ReasonSomeNotCompared,
			fmt.Sprintf("%d of %d not compared: %s", failed, len(p.manifests), text)}
	}
	differing := 0
	for _, s := range p.manifestStatus {
		if differs, _ := s.outcome.compared(); differs {
			differing++
		}
	}
	return conditionValue{metav1.ConditionTrue, placement.ReasonAllCompared,
		fmt.Sprintf("%d of %d differ; nothing is applied", differing, len(p.manifests))}
}

// available summarizes the condition Available of all manifests.
func (p *pass) available() conditionValue {
	text, failed := p.summarizeAll(manifestStatus.available)
	if failed > 0 {
		return conditionValue{metav1.ConditionFalse, placement.ReasonSomeUnavailable,
			fmt.Sprintf("%d of %d not available: %s", failed, len(p.manifests), text)}
	}
	for _, m := range p.manifests {
		if v := p.manifestStatus[m.ordinal].available(); v.reason == reasons.ManifestNotTrackable {
			return conditionValue{metav1.ConditionTrue, placement.ReasonNotTrackable,
				fmt.Sprintf("all are applied, and the availability of %s cannot be checked: %s", m.key, v.message)}
		}
	}
	return conditionValue{metav1.ConditionTrue, placement.ReasonAllAvailable,
		fmt.Sprintf("%d of %d available", len(p.manifests), len(p.manifests))}
}

// summarizeAll counts the manifests with a condition other than True, and names the first few.
func (p *pass) summarizeAll(value func(manifestStatus) conditionValue) (string, int) {
	const named = 3
	var texts []string
	failed := 0
	for _, m := range p.manifests {
		if v := value(p.manifestStatus[m.ordinal]); v.status != metav1.ConditionTrue {
			if failed++; failed <= named {
				texts = append(texts, fmt.Sprintf("%s: %s", m, v.message))
			}
		}
	}
	return kube.JoinTexts(texts, failed), failed
}

// report writes the status of a Work, if it changed.
func (c *Controller) report(ctx context.Context, work *placement.Work, status placement.WorkStatus) error {
	before := work.DeepCopy()
	work.Status = status
	if equality.Semantic.DeepEqual(before.Status, work.Status) {
		return nil
	}
	if err := c.hub.Status().Patch(ctx, work, changesOf(before), client.FieldOwner(fieldOwner)); err != nil {
		return client.IgnoreNotFound(wrap(err, "writing the status of Work %s", work.Name))
	}
	c.expected.Expect(client.ObjectKeyFromObject(work), work)
	was, is := conditionOf(before.Status), conditionOf(work.Status)
	if was != is {
		c.Log.Info("Work changed state", "work", work.Name, "from", was, "to", is)
	}
	return nil
}

func conditionOf(status placement.WorkStatus) string {
	for _, kind := range []string{placement.ConditionApplied, placement.ConditionDiffReported} {
		if said := meta.FindStatusCondition(status.Conditions, kind); said != nil {
			return said.Reason
		}
	}
	return "New"
}
