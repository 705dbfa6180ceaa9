package deploy

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

// Reasons of conditions beside the states.
const (
	reasonError     = "Error"
	reasonInstalled = "Installed"
	reasonDeployed  = "Deployed"
	reasonWatched   = "Watched"
	reasonUnwatched = "Unwatched"
	reasonMissing   = "FieldNotImplemented"
)

// statusOf is the status of a deployment in a state. What nothing is known about stays as it was.
func statusOf(d decision, s seen, now time.Time) fleet.BundleDeploymentStatus {
	status := *s.deployment.Status.DeepCopy()
	set := func(kind string, ok bool, reason, message string) {
		status.Conditions = kube.SetCondition(status.Conditions, now, kube.Condition(kind, ok, reason, message))
	}
	if s.found {
		status.Release = s.release.String()
		set(fleet.ConditionInstalled, true, reasonInstalled, "")
	} else {
		status.Release = ""
		set(fleet.ConditionInstalled, false, string(d.State), d.Reason)
	}
	status.Conditions = supported(status.Conditions, d, s.failure, now)
	state, message := fleet.StateReady, ""
	switch d.State {
	case Watching, Correcting:
		status.AppliedDeploymentID, status.SyncGeneration = s.deploymentID, &s.syncGeneration
		set(fleet.ConditionDeployed, true, reasonDeployed, "")
		state, message = watched(&status, s, set)
	case Failed, Unsupported:
		reason := reasonError
		if d.State == Failed && s.failure.reason != "" {
			reason = s.failure.reason
		}
		state, message = fleet.StateErrApplied, d.Reason
		set(fleet.ConditionDeployed, false, reason, message)
	case Held:
		set(fleet.ConditionMonitored, false, string(Held), d.Reason)
		state, message = fleet.BundleState(status.Display.State), readyMessage(status.Conditions)
		if state == "" {
			state, message = fleet.StateWaitApplied, d.Reason
		}
	case Gone, Kept, Confirming, Removing, Waiting, Moving, Deploying:
		state, message = fleet.StateWaitApplied, d.Reason
		set(fleet.ConditionDeployed, false, string(d.State), message)
	}
	if d.State != Held {
		set(fleet.ConditionReady, state == fleet.StateReady, string(state), message)
	}
	status.Display = fleet.BundleDeploymentDisplay{
		Deployed: shown(status.Conditions, fleet.ConditionDeployed), Monitored: shown(status.Conditions, fleet.ConditionMonitored), State: string(state),
	}
	return status
}

// supported is there only if a field is not.
func supported(conditions []fleet.Condition, d decision, last failure, now time.Time) []fleet.Condition {
	if d.State == Unsupported || d.State == Failed && last.reason == reasonMissing {
		return kube.SetCondition(conditions, now, kube.Condition(fleet.ConditionSupported, false, reasonMissing, d.Reason))
	}
	var rest []fleet.Condition
	for _, condition := range conditions {
		if condition.Type != fleet.ConditionSupported {
			rest = append(rest, condition)
		}
	}
	return rest
}

// watched adds how the objects of the release are.
func watched(status *fleet.BundleDeploymentStatus, s seen, set func(string, bool, string, string)) (fleet.BundleState, string) {
	if s.unwatched != "" {
		set(fleet.ConditionMonitored, false, reasonUnwatched, s.unwatched)
		status.Ready = false
		return fleet.StateNotReady, "it is not known how the resources are: " + s.unwatched
	}
	whileAwake := ""
	if isAgent(s.deployment) {
		whileAwake = "while something is deployed on this cluster; an agent that is well and deploys nothing else does not watch itself"
	}
	set(fleet.ConditionMonitored, true, reasonWatched, whileAwake)
	o := s.objects
	status.NonReadyStatus, status.ModifiedStatus = o.NonReady, o.Modified
	status.Resources, status.ResourceCounts = o.Resources, o.Counts
	status.IncompleteState = len(o.NonReady) < o.Counts.NotReady || len(o.Modified) < s.modified || len(o.Resources) < o.Counts.DesiredReady-o.Counts.Missing
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

func modifiedMessage(modified []fleet.ModifiedStatus, s seen) string {
	first := modified[0]
	what := "was changed downstream"
	switch {
	case first.Create:
		what = "was deleted downstream"
	case first.Exist:
		what = "was taken by another release downstream"
	case first.Patch != "":
		what += "; this would undo it: " + first.Patch
	}
	message := fmt.Sprintf("%s %s%s", object(first.Kind, first.Namespace, first.Name), what, more(s.modified))
	if s.correct && s.contested {
		message += "; somebody keeps changing it, so that it is set back less and less often: take what others decide out of the Bundle"
	}
	if s.failure.message != "" {
		message += "; " + s.failure.message
	}
	return message
}

func nonReadyMessage(nonReady []fleet.NonReadyStatus, all int) string {
	first := nonReady[0]
	return fmt.Sprintf("%s is %s: %s%s", object(first.Kind, first.Namespace, first.Name), first.Summary.State, strings.Join(first.Summary.Message, "; "), more(all))
}

func more(all int) string {
	if all < 2 {
		return ""
	}
	return fmt.Sprintf("; and %d more", all-1)
}

func object(kind, namespace, name string) string {
	if namespace == "" {
		return kind + " " + name
	}
	return kind + " " + namespace + "/" + name
}

// shown is a condition for a column.
func shown(conditions []fleet.Condition, kind string) string {
	condition := kube.FindCondition(conditions, kind)
	switch {
	case condition == nil:
		return ""
	case condition.Message == "":
		return string(condition.Status)
	default:
		return fmt.Sprintf("%s: %s", condition.Status, condition.Message)
	}
}

func readyMessage(conditions []fleet.Condition) string {
	if ready := kube.FindCondition(conditions, fleet.ConditionReady); ready != nil {
		return ready.Message
	}
	return ""
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
	return json.Marshal(map[string]any{"status": fields})
}
