package bundle

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/bundles/rollup"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
)

// reportEvery is the shortest interval between status writes of a Bundle.
const reportEvery = time.Second

// report writes the status after a change, unless it is too soon. It returns the wait for the
// next attempt.
func (c *Controller) report(ctx context.Context, o observed, p plan, created int) (time.Duration, error) {
	now := c.Clock.Now()
	after := o.bundle.DeepCopy()
	after.Status = describe(o, p, created, now)
	state := c.computedFor(client.ObjectKeyFromObject(o.bundle))
	wait := pendingFor(o.targets)
	if equality.Semantic.DeepEqual(o.bundle.Status, after.Status) {
		return wait, nil
	}
	if soonest := state.reported.Add(reportEvery); now.Before(soonest) {
		return soonest.Sub(now), nil
	}
	if first := c.agentReportIn(o, now); first > 0 {
		return sooner(wait, first), nil
	}
	if err := kube.PatchStatus(ctx, c.Client, o.bundle, after); err != nil {
		return 0, err
	}
	state.reported = now
	c.bundleWrites.Expect(client.ObjectKeyFromObject(after), after)
	c.recordTransition(ctx, o.bundle.Status, after)
	return wait, nil
}

// agentReportIn returns the wait of an agent's Bundle for the agent's first report about a version.
// One write then shows both, for each member. Problems are shown at once.
func (c *Controller) agentReportIn(o observed, now time.Time) time.Duration {
	if clusterOf(o.bundle) == anyCluster || !o.valid() {
		return 0
	}
	for _, t := range o.targets {
		if t.problem != nil || t.failure != nil {
			continue
		}
		var since time.Time
		switch {
		case t.deployment != nil && t.pending > 0:
			since, _ = c.sent.Get(t.deployment.UID)
		case t.deployment != nil && len(t.deployment.Status.Conditions) > 0:
			since = c.awaitedSince(t.deployment)
		case len(o.bundle.Status.Conditions) == 0:
			since = o.bundle.CreationTimestamp.Time
		}
		if !since.IsZero() {
			return max(0, min(since.Add(controller.Adoption).Sub(now), controller.Adoption))
		}
	}
	return 0
}

// pendingFor returns the longest wait for written deployments to reach the cache.
func pendingFor(targets []target) (wait time.Duration) {
	for _, t := range targets {
		wait = max(wait, t.pending)
	}
	return wait
}

// recordTransition reports a Bundle's change to invalid, or back to valid.
func (c *Controller) recordTransition(ctx context.Context, before fleet.BundleStatus, bundle *fleet.Bundle) {
	from, to := kube.FindCondition(before.Conditions, fleet.ConditionProcessed),
		kube.FindCondition(bundle.Status.Conditions, fleet.ConditionProcessed)
	if from == nil && to.Status == corev1.ConditionTrue || from != nil && from.Reason == to.Reason {
		return
	}
	ctrl.LoggerFrom(ctx).Info("Bundle changed state", "to", to.Reason, "message", to.Message)
	if to.Status != corev1.ConditionTrue {
		c.Recorder.Eventf(bundle, nil, corev1.EventTypeWarning, to.Reason, "Process", "%s", to.Message)
	}
}

// describe computes the status; no other function sets its fields.
func describe(o observed, p plan, created int, now time.Time) fleet.BundleStatus {
	after := *o.bundle.Status.DeepCopy()
	after.ObservedGeneration = o.bundle.Generation
	after.ResourcesSHA256Sum = o.content.sum
	after.NewlyCreated = created
	entries := make([]rollup.Entry, len(o.targets))
	var invalid []rollup.Entry
	held := o.takeover() != ""
	for i, t := range o.targets {
		entries[i] = t.entry(o.bundle.Namespace, p.release[i] && o.problem == nil)
		if held && t.changes() {
			entries[i].Message = "this hub would deploy another version than the one before it, and waits for a user to confirm that"
		}
		if o.endless != nil && entries[i].State == fleet.StateWaitingForDependency {
			entries[i].State, entries[i].Message = fleet.StateErrApplied, o.endless.message
		}
		if t.problem != nil || t.failure != nil {
			invalid = append(invalid, entries[i])
		}
	}
	after.Summary = rollup.Summarize(entries)
	after.Display.ReadyClusters = rollup.Ready(after.Summary)
	after.Display.State = string(rollup.Worst(after.Summary))
	switch {
	case o.waits() != "":
		after.Display.State = string(fleet.StatePending)
	case o.problem != nil && after.Display.State == string(fleet.StateReady): // its earlier version is ready
		after.Display.State = string(fleet.StateErrApplied)
	}
	after.MaxUnavailable, after.MaxUnavailablePartitions = p.maxUnavailable, p.maxUnavailablePartitions
	after.Unavailable, after.UnavailablePartitions = p.unavailable, p.unavailablePartitions
	after.MaxNew = maxNewOf(o.bundle)
	after.PartitionStatus = describePartitions(p, entries)

	for _, condition := range []fleet.Condition{
		ready(o, entries, after.Summary), processed(o, invalid), supported(o.bundle),
	} {
		after.Conditions = kube.SetCondition(after.Conditions, now, condition)
	}
	return after
}

// maxPartitions limits the partitions listed in a status, unready ones first.
const maxPartitions = 100

func describePartitions(p plan, entries []rollup.Entry) []fleet.PartitionStatus {
	var partitions, ready []fleet.PartitionStatus
	for _, w := range p.partitions {
		var members []rollup.Entry
		for _, m := range w.members {
			members = append(members, entries[m])
		}
		summary := rollup.Summarize(members)
		summary.NonReadyResources = nil // they are in the summary of the whole
		status := fleet.PartitionStatus{
			Name: w.name, Count: len(w.members), MaxUnavailable: w.maxUnavailable, Unavailable: w.unavailable, Summary: summary,
		}
		if len(p.partitions) > maxPartitions && summary.Ready == summary.DesiredReady {
			ready = append(ready, status)
		} else {
			partitions = append(partitions, status)
		}
	}
	partitions = append(partitions, ready...)
	return partitions[:min(len(partitions), maxPartitions)]
}

// waits returns the reason why the Bundle waits for a user's confirmation; "" if it does not.
func (o observed) waits() string {
	switch {
	case o.problem != nil:
		return ""
	case o.takeover() != "":
		return reasons.TakeoverHeld
	case o.brake() != "":
		return reasons.RemovalHeld
	}
	return ""
}

func ready(o observed, entries []rollup.Entry, summary fleet.BundleSummary) fleet.Condition {
	switch reason := o.waits(); {
	case o.problem != nil:
		return kube.Condition(fleet.ConditionReady, false, o.problemReason(reasons.Error), o.problem.Error())
	case reason != "":
		return kube.Condition(fleet.ConditionReady, false, reason, "it waits for a user to confirm the change in the condition Processed")
	case len(o.targets) == 0 && len(o.bundle.Spec.Targets) == 0:
		return kube.Condition(fleet.ConditionReady, true, reasons.NoTarget, "it has no targets and is deployed nowhere")
	case len(o.targets) == 0:
		return kube.Condition(fleet.ConditionReady, true, reasons.NoTarget, "its targets match no Cluster"+o.absentGroups+o.unmatched.Near())
	case summary.Ready < summary.DesiredReady && rollup.AllGone(entries):
		return kube.Condition(fleet.ConditionReady, false, reasons.AgentLost, rollup.ExplainAll("Cluster", entries))
	case summary.Ready < summary.DesiredReady:
		return kube.Condition(fleet.ConditionReady, false, rollup.Reason(summary), rollup.ExplainAll("Cluster", entries))
	}
	return kube.Condition(fleet.ConditionReady, true, reasons.Ready, "")
}

func processed(o observed, invalid []rollup.Entry) fleet.Condition {
	switch {
	case o.problem != nil:
		message := o.problem.Error() + "; deployed objects stay as they are"
		return kube.Condition(fleet.ConditionProcessed, false, o.problemReason(reasons.Invalid), message)
	case o.takeover() != "":
		return kube.Condition(fleet.ConditionProcessed, false, reasons.TakeoverHeld, o.takeover())
	case o.brake() != "":
		return kube.Condition(fleet.ConditionProcessed, false, reasons.RemovalHeld, o.brake())
	case o.endless != nil:
		return kube.Condition(fleet.ConditionProcessed, false, o.endless.reason, o.endless.message)
	case o.mappingProblem != nil:
		return kube.Condition(fleet.ConditionProcessed, false, reasons.InvalidMapping,
			o.mappingProblem.Error()+"; targets that do not depend on it go on")
	case len(invalid) > 0:
		return kube.Condition(fleet.ConditionProcessed, false, reasons.InvalidForSomeClusters,
			rollup.ExplainAll("Cluster", invalid))
	}
	switch {
	case o.outrankedCount > 0:
		return kube.Condition(fleet.ConditionProcessed, true, reasons.TargetOutranked, kube.JoinTexts(o.outranked, o.outrankedCount))
	case o.unmatched.Any() && len(o.targets) > 0: // Ready reports a Bundle without any Cluster
		return kube.Condition(fleet.ConditionProcessed, true, reasons.TargetUnmatched,
			"no Cluster for "+o.unmatched.String()+o.absentGroups+o.unmatched.Near())
	}
	return kube.Condition(fleet.ConditionProcessed, true, reasons.Processed, "")
}

func supported(bundle *fleet.Bundle) fleet.Condition {
	refused, ignored := unsupported(bundle)
	var effects []string
	if len(refused) > 0 {
		effects = append(effects, "deploys nothing that sets "+strings.Join(refused, ", "))
	}
	if len(ignored) > 0 {
		effects = append(effects, "goes on without "+strings.Join(ignored, ", "))
	}
	if len(effects) > 0 {
		return kube.Condition(fleet.ConditionSupported, false, reasons.UnsupportedFields,
			"Muster does not implement all fields yet: it "+strings.Join(effects, ", and "))
	}
	return kube.Condition(fleet.ConditionSupported, true, reasons.Supported, "")
}

// unsupported returns the fields in use but not implemented: fields refused by agents, and fields
// without an effect.
func unsupported(bundle *fleet.Bundle) (refused, ignored []string) {
	note := func(set bool, to *[]string, field string) {
		if field = "spec." + field; set && !slices.Contains(*to, field) {
			*to = append(*to, field)
		}
	}
	note(bundle.Spec.ContentsID != "" && bundle.Labels[fleet.LabelAgent] == "", &ignored, "contentsId")
	note(bundle.Spec.HelmOpOptions != nil, &ignored, "helmOpOptions")
	options := func(prefix string, o fleet.BundleDeploymentOptions) {
		note(len(o.Overwrites) > 0, &refused, prefix+"overwrites")
	}
	options("", bundle.Spec.BundleDeploymentOptions)
	for _, t := range bundle.Spec.Targets {
		options("targets[].", t.BundleDeploymentOptions)
	}
	return refused, ignored
}
