// Package rollup sums up the states of BundleDeployments: the counts and texts in the status of
// Bundles, Clusters and ClusterGroups. It writes nothing.
//
// Its invariant: text written by members is bounded before it is shown, and the contents of their
// objects are never shown.
package rollup

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// maxNamed limits the entries named in a summary.
	maxNamed = 10
	// maxObjects limits the objects named for each entry.
	maxObjects = 3
	// maxMessage limits the length of an entry's message.
	maxMessage = 400
	// maxState limits the length of an object's state.
	maxState = 64
)

// severity lists the bundle states, the worst first.
var severity = []fleet.BundleState{
	fleet.StateErrApplied, fleet.StateWaitApplied, fleet.StateModified, fleet.StateOutOfSync, fleet.StatePending,
	fleet.StateNotReady, fleet.StateReady,
}

// StateOf returns the state of a deployment. It combines the agent's report with the rollout,
// which may hold back a newer deployment ID.
func StateOf(d *fleet.BundleDeployment) fleet.BundleState {
	state := delivery.StateOf(d)
	if d.Spec.StagedDeploymentID != d.Spec.DeploymentID && (state == fleet.StateNotReady || state == fleet.StateReady) {
		return fleet.StatePending
	}
	return state
}

// Available reports whether the deployment ID in the spec is in place and ready.
func Available(d *fleet.BundleDeployment) bool {
	state := delivery.StateOf(d)
	return state == fleet.StateReady || state == fleet.StateModified && d.Status.Ready
}

// Display returns the columns of a deployment. They are bounded, because a member writes the
// messages.
func Display(d *fleet.BundleDeployment) fleet.BundleDeploymentDisplay {
	display := delivery.Display(d, StateOf(d))
	display.Deployed, display.Monitored = short(display.Deployed), short(display.Monitored)
	return display
}

// OnlyShown reports whether only the hub's display of a deployment changed, and is now correct.
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
		case d.Spec.Paused:
			return "paused"
		}
		return "the agent has not reported it yet"
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

// Entry is one deployment in a summary.
type Entry struct {
	// Name is the name of a Cluster in the summary of a Bundle, and of a Bundle in the summary of
	// a Cluster.
	Name    string
	State   fleet.BundleState
	Message string
	// Deployment is optional; its lists are shown.
	Deployment *fleet.BundleDeployment
}

// Summarize counts entries by state and names the worst of those that are not ready.
func Summarize(entries []Entry) fleet.BundleSummary {
	var summary fleet.BundleSummary
	var bad []Entry
	for _, e := range entries {
		*count(&summary, e.State)++
		summary.DesiredReady++
		if e.State != fleet.StateReady {
			bad = append(bad, e)
		}
	}
	slices.SortStableFunc(bad, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(rank(a.State), rank(b.State)), cmp.Compare(a.Name, b.Name))
	})
	for _, e := range bad[:min(len(bad), maxNamed)] {
		named := fleet.NonReadyResource{Name: e.Name, State: e.State, Message: short(e.Message)}
		if d := e.Deployment; d != nil {
			for _, m := range d.Status.ModifiedStatus[:min(len(d.Status.ModifiedStatus), maxObjects)] {
				m.Patch = "" // it may hold the data of a Secret
				named.ModifiedStatus = append(named.ModifiedStatus, m)
			}
			named.NonReadyStatus = Clipped(d.Status.NonReadyStatus, maxObjects)
		}
		summary.NonReadyResources = append(summary.NonReadyResources, named)
	}
	return summary
}

// Clipped returns the first few objects that are not ready, each with its first few messages.
// Long messages are cut, because a member writes them.
func Clipped(list []fleet.NonReadyStatus, most int) []fleet.NonReadyStatus {
	list = slices.Clone(list[:min(len(list), most)])
	for i := range list {
		s := &list[i].Summary
		s.State = kube.Clip(s.State, maxState)
		var messages []string
		for _, m := range s.Message[:min(len(s.Message), maxObjects)] {
			messages = append(messages, short(m))
		}
		s.Message = messages
	}
	return list
}

// Add adds the counts of another summary, and the names as long as there is room.
func Add(to *fleet.BundleSummary, other fleet.BundleSummary) {
	for _, state := range severity {
		*count(to, state) += *count(&other, state)
	}
	to.DesiredReady += other.DesiredReady
	room := maxNamed - len(to.NonReadyResources)
	to.NonReadyResources = append(to.NonReadyResources, other.NonReadyResources[:min(len(other.NonReadyResources), room)]...)
}

// AddCounts adds the counts of deployed resources.
func AddCounts(to *fleet.ResourceCounts, other fleet.ResourceCounts) {
	to.Ready += other.Ready
	to.DesiredReady += other.DesiredReady
	to.WaitApplied += other.WaitApplied
	to.Modified += other.Modified
	to.Orphaned += other.Orphaned
	to.Missing += other.Missing
	to.Unknown += other.Unknown
	to.NotReady += other.NotReady
}

// Worst returns the worst state with a count, or Ready.
func Worst(summary fleet.BundleSummary) fleet.BundleState {
	for _, state := range severity {
		if *count(&summary, state) > 0 {
			return state
		}
	}
	return fleet.StateReady
}

// Ready returns the text `ready/desired`.
func Ready(summary fleet.BundleSummary) string {
	return fmt.Sprintf("%d/%d", summary.Ready, summary.DesiredReady)
}

// Explain returns one line about everything that is not ready: each state with its count and its
// named entries. The kind precedes each name.
func Explain(kind string, summary fleet.BundleSummary) string {
	var parts []string
	for _, state := range severity {
		n := *count(&summary, state)
		if n == 0 || state == fleet.StateReady {
			continue
		}
		part := fmt.Sprintf("%s(%d)", state, n)
		var named []string
		for _, r := range summary.NonReadyResources {
			if r.State != state {
				continue
			}
			name := kind + " " + r.Name
			if r.Message != "" {
				name += ": " + r.Message
			}
			named = append(named, name)
		}
		if len(named) > 0 {
			part += " [" + strings.Join(named, "; ") + "]"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

func rank(state fleet.BundleState) int { return slices.Index(severity, state) }

// count returns the counter of a state.
func count(s *fleet.BundleSummary, state fleet.BundleState) *int {
	switch state {
	case fleet.StateErrApplied:
		return &s.ErrApplied
	case fleet.StateWaitApplied:
		return &s.WaitApplied
	case fleet.StateModified:
		return &s.Modified
	case fleet.StateOutOfSync:
		return &s.OutOfSync
	case fleet.StatePending:
		return &s.Pending
	case fleet.StateNotReady:
		return &s.NotReady
	case fleet.StateReady:
	}
	return &s.Ready
}
