package bundle

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	contents "github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
)

// maxNamed is the maximum number of changed objects in a message.
const maxNamed = 3

// statusOf returns the status of a deployment in a state. Fields without new information keep their
// value.
func statusOf(d decision, s observation, now time.Time) fleet.BundleDeploymentStatus {
	status := *s.deployment.Status.DeepCopy()
	set := func(condition fleet.Condition) {
		status.Conditions = kube.SetCondition(status.Conditions, now, condition)
	}
	if contents.OfEarlier(s.deployment) {
		// The conditions of the previous deployment ID must not look current.
		status.Conditions = kube.RemoveCondition(kube.RemoveCondition(status.Conditions, fleet.ConditionDeployed), fleet.ConditionInstalled)
	}
	status.Conditions = supported(status.Conditions, d, s.failure, now)
	status.Conditions = crdsCurrent(status.Conditions, d, s, now)
	installed := kube.Condition(fleet.ConditionInstalled, s.found, reasons.Installed, "")
	status.Release = releaseOf(s, status.Release)
	state, message := fleet.StateReady, ""
	switch d.State {
	case Watching, Correcting:
		status.AppliedDeploymentID, status.SyncGeneration = s.deploymentID, &s.syncGeneration
		status.DownstreamResourcesGeneration = optional(s.deployment.Spec.DownstreamResourcesGeneration)
		set(kube.Condition(fleet.ConditionDeployed, true, reasons.Deployed, ""))
		state, message = watched(&status, s, set)
	case Failed, Unsupported:
		reason := failedBecause(d, s.failure)
		state, message = fleet.StateErrApplied, d.Reason
		if reason == reasons.NamespaceTerminating { // the deployer waits for it; this is no failure
			state, installed = fleet.StateWaitApplied, waits(installed, s.found, reason, message)
			set(unknown(fleet.ConditionDeployed, reason, message))
			break
		}
		// The deployed revision stays deployed if an object of the next one belongs to another owner.
		keeps := s.found && reason == reasons.ObjectConflict && kube.FindCondition(status.Conditions, fleet.ConditionDeployed) != nil
		switch {
		case !keeps:
			set(kube.Condition(fleet.ConditionDeployed, false, reason, message))
		case s.release.Deployed: // a slow attempt has reported Deploying
			set(kube.Condition(fleet.ConditionDeployed, true, reasons.Deployed, ""))
		}
		if !s.found || keeps {
			installed = kube.Condition(fleet.ConditionInstalled, false, reason, message)
		}
	case Held:
		set(kube.Condition(fleet.ConditionMonitored, false, heldReason(s.deployment.Spec), d.Reason))
		installed = waits(installed, s.found, heldReason(s.deployment.Spec), d.Reason)
	case Gone, Kept, Confirming, Removing, Moving, Deploying, Waiting:
		state, message = fleet.StateWaitApplied, d.Reason
		reason := string(d.State)
		if d.State == Waiting {
			state, reason = fleet.StateWaitingForDependency, string(fleet.StateWaitingForDependency)
		}
		status.Ready = status.Ready && !s.superseded // a move was undone, back to the applied deployment ID
		set(unknown(fleet.ConditionDeployed, reason, message))
		installed = waits(installed, s.found, reason, message)
	}
	set(installed)
	switch {
	case d.State == Held && kube.FindCondition(status.Conditions, fleet.ConditionReady) != nil:
	case d.State == Held:
		set(kube.Condition(fleet.ConditionReady, false, heldReason(s.deployment.Spec), d.Reason))
	default:
		set(kube.Condition(fleet.ConditionReady, state == fleet.StateReady, readyReason(state), message))
	}
	return status
}

// optional returns a number for an optional field; nil for 0.
func optional(number int64) *int64 {
	if number == 0 {
		return nil
	}
	return &number
}

// releaseOf returns the text for a release. A moved release is named once the old one is gone.
func releaseOf(s observation, before string) string {
	switch {
	case !s.found:
		return ""
	case s.others == 0 || before == "":
		return s.release.String()
	}
	return before
}

// waits returns the condition Installed of a waiting release: Unknown unless it is installed.
func waits(installed fleet.Condition, found bool, reason, message string) fleet.Condition {
	if found {
		return installed
	}
	return unknown(fleet.ConditionInstalled, reason, message)
}

// failedBecause returns the reason of a False condition after a failure.
func failedBecause(d decision, last failure) string {
	if d.State == Failed && last.reason != "" {
		return last.reason
	}
	return reasons.Error
}

// readyReason returns the reason of the condition Ready: the reason of Rancher Fleet's agents for a
// failure.
func readyReason(state fleet.BundleState) string {
	if state == fleet.StateReady || state == fleet.StateWaitApplied || state == fleet.StateWaitingForDependency {
		return string(state)
	}
	return reasons.Error
}

// heldReason returns the reason of a condition of a deployment that the hub holds back.
func heldReason(spec fleet.BundleDeploymentSpec) string {
	switch {
	case spec.Paused:
		return string(fleet.StatePaused)
	case spec.OffSchedule:
		return string(fleet.StateOutsideWindow)
	}
	return string(fleet.StateWaitApplied)
}

func unknown(kind, reason, message string) fleet.Condition {
	return fleet.Condition{Type: kind, Status: corev1.ConditionUnknown, Reason: reason, Message: message}
}

// supported sets the condition Supported only if a field is not supported.
func supported(conditions []fleet.Condition, d decision, last failure, now time.Time) []fleet.Condition {
	if d.State == Unsupported || d.State == Failed && last.reason == reasons.FieldNotImplemented {
		return kube.SetCondition(conditions, now, kube.Condition(fleet.ConditionSupported, false, reasons.FieldNotImplemented, d.Reason))
	}
	return kube.RemoveCondition(conditions, fleet.ConditionSupported)
}

// watched adds the state of the objects of the release.
func watched(status *fleet.BundleDeploymentStatus, s observation, set func(fleet.Condition)) (fleet.BundleState, string) {
	if s.unwatched != "" {
		set(kube.Condition(fleet.ConditionMonitored, false, reasons.Unwatched, s.unwatched))
		status.Ready = false
		return fleet.StateNotReady, "the state of the resources is unknown: " + s.unwatched
	}
	whileAwake := ""
	if isAgent(s.deployment) {
		whileAwake = "while something is deployed on this cluster; an agent that is well and deploys nothing else does not watch itself"
	}
	set(kube.Condition(fleet.ConditionMonitored, true, reasons.Watched, whileAwake))
	o := s.objects
	status.NonReadyStatus, status.ModifiedStatus = o.NonReady, o.Modified
	status.Resources, status.ResourceCounts = o.Resources, o.Counts
	status.IncompleteState = len(o.NonReady) < o.Counts.NotReady || len(o.Modified) < o.Changed ||
		len(o.Resources) < o.Counts.DesiredReady-o.Counts.Missing
	status.Ready, status.NonModified = o.Counts.NotReady == 0 && o.Counts.Missing == 0, len(o.Modified) == 0
	switch {
	case !status.NonModified:
		return fleet.StateModified, strings.Join(slices.Concat([]string{modifiedMessage(o.Modified, s)}, o.Hints, o.Unmatched), "; ")
	case !status.Ready:
		return fleet.StateNotReady, nonReadyMessage(o.NonReady, o.Counts.NotReady)
	default:
		words := slices.Concat(o.Suspended[:min(len(o.Suspended), maxNamed)], o.Unmatched)
		words = words[:min(len(words), maxNamed)]
		if s.release.Repeated != "" {
			words = append(words, "more than once in the manifests, with only the last one deployed: "+s.release.Repeated)
		}
		if message := s.crds.Message(crdSetting(s.deployment.Spec.Options)); message != "" {
			words = append(words, message)
		}
		return fleet.StateReady, strings.Join(words, "; ")
	}
}

// crdsCurrent sets the condition CRDsCurrent only if definitions differ.
func crdsCurrent(conditions []fleet.Condition, d decision, s observation, now time.Time) []fleet.Condition {
	message := s.crds.Message(crdSetting(s.deployment.Spec.Options))
	switch {
	case d.State != Watching && d.State != Correcting:
		return conditions
	case message == "":
		return kube.RemoveCondition(conditions, fleet.ConditionCRDsCurrent)
	}
	return kube.SetCondition(conditions, now, kube.Condition(fleet.ConditionCRDsCurrent, false, reasons.CRDsDiffer, message))
}

// modifiedMessage describes the changes as Rancher Fleet's agents do.
func modifiedMessage(modified []fleet.ModifiedStatus, s observation) string {
	var words []string
	for _, one := range modified[:min(len(modified), maxNamed)] {
		words = append(words, resource(one)+" "+change(one))
	}
	message := kube.JoinTexts(words, s.objects.Changed)
	if s.correct && s.contested {
		message += "; another client keeps changing it, and the agent corrects it less and less often: remove the fields of other clients " +
			"from the Bundle"
	}
	if s.failure.message != "" {
		message += "; " + s.failure.message
	}
	return message
}

// change describes the change of an object.
func change(modified fleet.ModifiedStatus) string {
	switch {
	case modified.Create:
		return "missing"
	case modified.Delete:
		return "extra"
	case modified.Exist:
		return "not owned by us"
	case modified.Patch == "":
		return "modified"
	}
	return "modified " + modified.Patch
}

// resource names an object as Rancher Fleet's agents do.
func resource(of fleet.ModifiedStatus) string {
	group, _, grouped := strings.Cut(of.APIVersion, "/")
	if !grouped {
		group = of.APIVersion
	}
	return kube.Name(strings.ToLower(of.Kind)+"."+group, of.Namespace, of.Name)
}

func nonReadyMessage(nonReady []fleet.NonReadyStatus, all int) string {
	first := nonReady[0]
	text := fmt.Sprintf("%s is %s: %s", kube.Name(first.Kind, first.Namespace, first.Name), first.Summary.State,
		strings.Join(first.Summary.Message, "; "))
	return kube.JoinTexts([]string{text}, all)
}

// patchOf returns the merge patch for a status; it removes empty fields.
func patchOf(status fleet.BundleDeploymentStatus) ([]byte, error) {
	encoded, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	fields := map[string]any{}
	if err := json.Unmarshal(encoded, &fields); err != nil {
		return nil, err
	}
	for _, field := range []string{
		"release", "ready", "nonModified", "nonReadyStatus", "modifiedStatus", "incompleteState", "resources", "syncGeneration",
		"appliedDeploymentID", "downstreamResourcesGeneration",
	} {
		if _, there := fields[field]; !there {
			fields[field] = nil
		}
	}
	shown := status.Display // with its empty fields, which an earlier display may have
	fields["display"] = map[string]string{"deployed": shown.Deployed, "monitored": shown.Monitored, "state": shown.State}
	return json.Marshal(map[string]any{"status": fields})
}
