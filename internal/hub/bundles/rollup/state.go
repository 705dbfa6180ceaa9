package rollup

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/kube"
)

// StateOf returns the state of a deployment. It combines the agent's report with the hub's reasons
// to delay a new version: a pause, a Schedule, the rollout.
func StateOf(d *fleet.BundleDeployment) fleet.BundleState {
	state, held := delivery.StateOf(d), d.Spec.StagedDeploymentID != d.Spec.DeploymentID
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

// Available reports whether the version in the spec is deployed and ready.
func Available(d *fleet.BundleDeployment) bool {
	state := delivery.StateOf(d)
	return state == fleet.StateReady || state == fleet.StateModified && d.Status.Ready
}

// Display returns the columns of a deployment. They are bounded, because a member writes the
// messages.
func Display(d *fleet.BundleDeployment) fleet.BundleDeploymentDisplay {
	display := delivery.Display(d, Wire(StateOf(d)))
	display.Deployed, display.Monitored = short(display.Deployed), short(display.Monitored)
	return display
}

// OnlyShown reports whether an update changed only status.display, to the value of Display.
func OnlyShown(before, after *fleet.BundleDeployment) bool {
	if before.Status.Display == after.Status.Display || after.Status.Display != Display(after) {
		return false
	}
	was, is := *before, *after
	was.ResourceVersion, was.Status.Display = is.ResourceVersion, is.Status.Display
	return equality.Semantic.DeepEqual(was, is)
}

// Message returns the reason why a deployment is not ready.
func Message(d *fleet.BundleDeployment) string {
	switch StateOf(d) {
	case fleet.StateErrApplied, fleet.StateWaitApplied:
		c := delivery.Complaint(d)
		switch {
		case c != nil && delivery.OfEarlier(d):
			return short("the agent has reported nothing new yet; before that it said: " + c.Message)
		case c != nil:
			return cmp.Or(short(c.Message), "its agent gives no reason")
		}
		return "the agent has not reported it yet"
	case fleet.StateWaitingForDependency:
		return cmp.Or(short(complaint(d)), "its agent does not name the Bundle that it waits for")
	case fleet.StatePaused:
		return "paused"
	case fleet.StateOutsideWindow:
		return "outside of the windows of its Schedules"
	case fleet.StateModified:
		return short(modified(d.Status.ModifiedStatus))
	case fleet.StatePending:
		return "held back by the rollout"
	case fleet.StateNotReady:
		if c := delivery.Complaint(d); c != nil && len(d.Status.NonReadyStatus) == 0 {
			return cmp.Or(short(c.Message), "its agent gives no reason")
		}
		return short(notReady(d.Status.NonReadyStatus))
	case fleet.StateOutOfSync, fleet.StateReady: // the state is enough
	}
	return ""
}

// complaint returns the message of the agent about an unapplied deployment ID.
func complaint(d *fleet.BundleDeployment) string {
	if c := delivery.Complaint(d); c != nil {
		return c.Message
	}
	return ""
}

func modified(list []fleet.ModifiedStatus) string {
	var words []string
	for _, m := range list[:min(len(list), maxObjects)] {
		what := "was changed"
		switch {
		case m.Create:
			what = "is missing"
		case m.Delete:
			what = "should not be there"
		case m.Exist:
			what = "belongs to something else"
		}
		words = append(words, kube.Name(m.Kind, m.Namespace, m.Name)+" "+what)
	}
	return kube.JoinTexts(words, len(list))
}

func notReady(list []fleet.NonReadyStatus) string {
	var words []string
	for _, n := range list[:min(len(list), maxObjects)] {
		why := strings.Join(n.Summary.Message, ", ")
		words = append(words, kube.Name(n.Kind, n.Namespace, n.Name)+": "+cmp.Or(why, n.Summary.State, "not ready"))
	}
	return kube.JoinTexts(words, len(list))
}

func short(text string) string {
	return kube.Clip(strings.Join(strings.Fields(text), " "), maxMessage)
}
