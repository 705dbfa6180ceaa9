package rollup

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/kube"
)

// Available reports whether the version in the spec is deployed and ready.
func Available(d *fleet.BundleDeployment) bool {
	state := delivery.StateOf(d)
	return state == fleet.StateReady || state == fleet.StateModified && d.Status.Ready
}

// OnlyShown reports whether an update changed only status.display, to the value of
// delivery.Display.
func OnlyShown(before, after *fleet.BundleDeployment) bool {
	if before.Status.Display == after.Status.Display || after.Status.Display != delivery.Display(after) {
		return false
	}
	was, is := *before, *after
	was.ResourceVersion, was.Status.Display = is.ResourceVersion, is.Status.Display
	return equality.Semantic.DeepEqual(was, is)
}

// Message returns the reason why a deployment is not ready.
func Message(d *fleet.BundleDeployment) string {
	switch delivery.EffectiveState(d) {
	case fleet.StateErrApplied, fleet.StateWaitApplied:
		c := delivery.Complaint(d)
		switch {
		case c != nil && delivery.OfEarlier(d):
			return delivery.Short("the agent has reported nothing new yet; before that it said: " + c.Message)
		case c != nil:
			return cmp.Or(delivery.Short(c.Message), "its agent gives no reason")
		}
		return "the agent has not reported it yet"
	case fleet.StateWaitingForDependency:
		return cmp.Or(delivery.Short(complaint(d)), "its agent does not name the Bundle that it waits for")
	case fleet.StatePaused:
		return "paused"
	case fleet.StateOutsideWindow:
		return "outside of the windows of its Schedules"
	case fleet.StateModified:
		return delivery.Short(modified(d.Status.ModifiedStatus))
	case fleet.StatePending:
		return "held back by the rollout"
	case fleet.StateNotReady:
		if c := delivery.Complaint(d); c != nil && len(d.Status.NonReadyStatus) == 0 {
			return cmp.Or(delivery.Short(c.Message), "its agent gives no reason")
		}
		return delivery.Short(notReady(d.Status.NonReadyStatus))
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
