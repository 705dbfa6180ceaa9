package bundle

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	contents "github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/kube"
)

// maxNamed is how many changed objects a message names.
const maxNamed = 3

// Reasons of conditions beside the states.
const (
	reasonError     = "Error"
	reasonInstalled = "Installed"
	reasonDeployed  = "Deployed"
	reasonWatched   = "Watched"
	reasonUnwatched = "Unwatched"
	reasonMissing   = "FieldNotImplemented"
	reasonConflict  = "ObjectConflict"
)

// statusOf is the status of a deployment in a state. Fields of which nothing is known stay as they were.
func statusOf(d decision, s observation, now time.Time) fleet.BundleDeploymentStatus {
	status := *s.deployment.Status.DeepCopy()
	set := func(condition fleet.Condition) {
		status.Conditions = kube.SetCondition(status.Conditions, now, condition)
	}
	if contents.OfEarlier(s.deployment) {
		// The conditions of the deployment ID before must not look like those of this one.
		status.Conditions = kube.RemoveCondition(kube.RemoveCondition(status.Conditions, fleet.ConditionDeployed), fleet.ConditionInstalled)
	}
	status.Conditions = supported(status.Conditions, d, s.failure, now)
	installed := kube.Condition(fleet.ConditionInstalled, s.found, reasonInstalled, "")
	if !s.found {
		status.Release = ""
	} else if s.others == 0 || status.Release == "" { // a release that is moved is named when nothing is left where it was
		status.Release = s.release.String()
	}
	state, message := fleet.StateReady, ""
	switch d.State {
	case Watching, Correcting:
		status.AppliedDeploymentID, status.SyncGeneration = s.deploymentID, &s.syncGeneration
		set(kube.Condition(fleet.ConditionDeployed, true, reasonDeployed, ""))
		state, message = watched(&status, s, set)
	case Failed, Unsupported, Waiting:
		reason := failedBecause(d, s.failure)
		state, message = fleet.StateErrApplied, d.Reason
		// What is deployed stays deployed if an object of the next revision is another's.
		keeps := s.found && reason == reasonConflict && kube.FindCondition(status.Conditions, fleet.ConditionDeployed) != nil
		switch {
		case !keeps:
			set(kube.Condition(fleet.ConditionDeployed, false, reason, message))
		case s.release.Deployed: // an attempt that took its time said that it was being deployed
			set(kube.Condition(fleet.ConditionDeployed, true, reasonDeployed, ""))
		}
		if !s.found || keeps {
			installed = kube.Condition(fleet.ConditionInstalled, false, reason, message)
		}
	case Held:
		set(kube.Condition(fleet.ConditionMonitored, false, string(Held), d.Reason))
	case Gone, Kept, Confirming, Removing, Moving, Deploying:
		state, message = fleet.StateWaitApplied, d.Reason
		status.Ready = status.Ready && !s.superseded // a move was taken back to the deployment ID that is still noted as applied
		set(unknown(fleet.ConditionDeployed, string(d.State), message))
		if !s.found {
			installed = unknown(fleet.ConditionInstalled, string(d.State), message)
		}
	}
	set(installed)
	switch {
	case d.State == Held && kube.FindCondition(status.Conditions, fleet.ConditionReady) != nil:
	case d.State == Held:
		set(kube.Condition(fleet.ConditionReady, false, string(fleet.StateWaitApplied), d.Reason))
	default:
		set(kube.Condition(fleet.ConditionReady, state == fleet.StateReady, readyReason(state), message))
	}
	return status
}

// failedBecause is the reason of a condition that is False because the deployment failed.
func failedBecause(d decision, last failure) string {
	switch {
	case d.State == Waiting:
		return string(Waiting)
	case d.State == Failed && last.reason != "":
		return last.reason
	}
	return reasonError
}

// readyReason is the reason of the condition Ready: that of Rancher Fleet's agents where something is wrong.
func readyReason(state fleet.BundleState) string {
	if state == fleet.StateReady || state == fleet.StateWaitApplied {
		return string(state)
	}
	return reasonError
}

func unknown(kind, reason, message string) fleet.Condition {
	return fleet.Condition{Type: kind, Status: corev1.ConditionUnknown, Reason: reason, Message: message}
}

// supported is there only if a field is not.
func supported(conditions []fleet.Condition, d decision, last failure, now time.Time) []fleet.Condition {
	if d.State == Unsupported || d.State == Failed && last.reason == reasonMissing {
		return kube.SetCondition(conditions, now, kube.Condition(fleet.ConditionSupported, false, reasonMissing, d.Reason))
	}
	return kube.RemoveCondition(conditions, fleet.ConditionSupported)
}

// watched adds how the objects of the release are.
func watched(status *fleet.BundleDeploymentStatus, s observation, set func(fleet.Condition)) (fleet.BundleState, string) {
	if s.unwatched != "" {
		set(kube.Condition(fleet.ConditionMonitored, false, reasonUnwatched, s.unwatched))
		status.Ready = false
		return fleet.StateNotReady, "it is not known how the resources are: " + s.unwatched
	}
	whileAwake := ""
	if isAgent(s.deployment) {
		whileAwake = "while something is deployed on this cluster; an agent that is well and deploys nothing else does not watch itself"
	}
	set(kube.Condition(fleet.ConditionMonitored, true, reasonWatched, whileAwake))
	o := s.objects
	status.NonReadyStatus, status.ModifiedStatus = o.NonReady, o.Modified
	status.Resources, status.ResourceCounts = o.Resources, o.Counts
	status.IncompleteState = len(o.NonReady) < o.Counts.NotReady || len(o.Modified) < o.Changed || len(o.Resources) < o.Counts.DesiredReady-o.Counts.Missing
	status.Ready, status.NonModified = o.Counts.NotReady == 0 && o.Counts.Missing == 0, len(o.Modified) == 0
	switch {
	case !status.NonModified:
		return fleet.StateModified, modifiedMessage(o.Modified, s)
	case !status.Ready:
		return fleet.StateNotReady, nonReadyMessage(o.NonReady, o.Counts.NotReady)
	default:
		return fleet.StateReady, ""
	}
}

// modifiedMessage describes the changes as Rancher Fleet's agents do.
func modifiedMessage(modified []fleet.ModifiedStatus, s observation) string {
	var words []string
	for _, one := range modified[:min(len(modified), maxNamed)] {
		words = append(words, resource(one)+" "+change(one))
	}
	message := kube.JoinTexts(words, s.objects.Changed)
	if s.correct && s.contested {
		message += "; somebody keeps changing it, so that it is set back less and less often: take what others decide out of the Bundle"
	}
	if s.failure.message != "" {
		message += "; " + s.failure.message
	}
	return message
}

// change is what became of an object.
func change(of fleet.ModifiedStatus) string {
	switch {
	case of.Create:
		return "missing"
	case of.Delete:
		return "extra"
	case of.Exist:
		return "not owned by us"
	case of.Patch == "":
		return "modified"
	}
	return "modified " + of.Patch
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
	text := fmt.Sprintf("%s is %s: %s", kube.Name(first.Kind, first.Namespace, first.Name), first.Summary.State, strings.Join(first.Summary.Message, "; "))
	return kube.JoinTexts([]string{text}, all)
}

// patchOf is the merge patch that makes a status what it is to be; what is empty is taken out.
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
		"release", "ready", "nonModified", "nonReadyStatus", "modifiedStatus", "incompleteState", "resources", "syncGeneration", "appliedDeploymentID",
	} {
		if _, there := fields[field]; !there {
			fields[field] = nil
		}
	}
	delete(fields, "display") // is the hub's
	return json.Marshal(map[string]any{"status": fields})
}
