package delivery

import (
	"fmt"
	"strings"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

// maxShown limits the length of a text in a display or a summary, in bytes.
const maxShown = 400

// EffectiveState returns the state of a deployment. It combines the agent's report with the hub's
// reasons to delay a new version: a pause, a Schedule, the rollout.
func EffectiveState(d *fleet.BundleDeployment) fleet.BundleState {
	state, held := StateOf(d), d.Spec.StagedDeploymentID != d.Spec.DeploymentID
	switch state {
	case fleet.StateWaitApplied, fleet.StateWaitingForDependency:
	case fleet.StateNotReady, fleet.StateReady:
		if !held {
			return state
		}
	case fleet.StateErrApplied, fleet.StateModified, fleet.StateOutOfSync, fleet.StatePending, fleet.StateOutsideWindow, fleet.StatePaused:
		return state
	}
	switch {
	case d.Spec.Paused:
		return fleet.StatePaused
	case d.Spec.OffSchedule:
		return fleet.StateOutsideWindow
	case held && state != fleet.StateWaitApplied:
		return fleet.StatePending
	}
	return state
}

// Wire maps a state to a state for clients of Rancher Fleet. They do not know all waiting states.
func Wire(state fleet.BundleState) fleet.BundleState {
	if state == fleet.StatePaused || state == fleet.StateOutsideWindow {
		return fleet.StatePending
	}
	return state
}

// Display returns the columns of a deployment, as the hub shows them while its agent is alive.
// Muster's agent writes them with its report; the hub writes them for other agents, and corrects
// them. They are bounded, because a member writes the messages.
func Display(d *fleet.BundleDeployment) fleet.BundleDeploymentDisplay {
	return fleet.BundleDeploymentDisplay{
		Deployed:  shown(condition(d, fleet.ConditionDeployed)),
		Monitored: shown(condition(d, fleet.ConditionMonitored)),
		State:     string(Wire(EffectiveState(d))),
	}
}

func shown(c *fleet.Condition) string {
	switch {
	case c == nil:
		return ""
	case c.Message == "":
		return string(c.Status)
	default:
		return Short(fmt.Sprintf("%s: %s", c.Status, c.Message))
	}
}

// Short returns a text of a member as one bounded line.
func Short(text string) string {
	return kube.Clip(strings.Join(strings.Fields(text), " "), maxShown)
}
