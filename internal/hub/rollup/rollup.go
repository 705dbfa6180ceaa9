// Package rollup says how deployments stand, one and many: what a Bundle, a Cluster and a ClusterGroup show is counted and worded here.
//
// Its invariant: what members wrote is bounded before it is shown, and the contents of their objects are never shown.
package rollup

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// maxNamed is how many that are not ready a summary names.
	maxNamed = 10
	// maxObjects is how many objects are named of each.
	maxObjects = 3
	// maxMessage is how long the message of one may be.
	maxMessage = 400
)

// severity lists the bundle states, the worst first.
var severity = []fleet.BundleState{
	fleet.StateErrApplied, fleet.StateWaitApplied, fleet.StateModified, fleet.StateOutOfSync, fleet.StatePending, fleet.StateNotReady, fleet.StateReady,
}

// StateOf says how a deployment stands, going by what its agent reported of what it was last told.
func StateOf(d *fleet.BundleDeployment) fleet.BundleState {
	switch {
	case failed(d):
		return fleet.StateErrApplied
	case d.Spec.DeploymentID == "" || d.Status.AppliedDeploymentID != d.Spec.DeploymentID:
		return fleet.StateWaitApplied
	case !d.Status.NonModified:
		return fleet.StateModified
	case d.Spec.StagedDeploymentID != d.Spec.DeploymentID:
		return fleet.StatePending
	case !d.Status.Ready:
		return fleet.StateNotReady
	}
	return fleet.StateReady
}

// Available says whether what a deployment was last told is in place and ready.
func Available(d *fleet.BundleDeployment) bool {
	return d.Spec.DeploymentID != "" && d.Status.AppliedDeploymentID == d.Spec.DeploymentID && d.Status.Ready && !failed(d)
}

// failed says whether the agent could not carry the deployment out. An agent that shows no state says so by a condition; one that does
// may have conditions that are not true yet because it is still at it.
func failed(d *fleet.BundleDeployment) bool {
	if state := d.Status.Display.State; state != "" {
		return state == string(fleet.StateErrApplied)
	}
	c := complaint(d)
	return c != nil && c.Status == corev1.ConditionFalse
}

// complaint returns the condition that says that the deployment is not carried out.
func complaint(d *fleet.BundleDeployment) *fleet.Condition {
	for _, kind := range []string{fleet.ConditionDeployed, fleet.ConditionInstalled} {
		if c := kube.FindCondition(d.Status.Conditions, kind); c != nil && c.Status != corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// Message says why a deployment is not ready.
func Message(d *fleet.BundleDeployment) string {
	switch StateOf(d) {
	case fleet.StateErrApplied, fleet.StateWaitApplied:
		switch c := complaint(d); {
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
		return short(notReady(d.Status.NonReadyStatus))
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
		words = append(words, object(m.Kind, m.Namespace, m.Name)+" "+what)
	}
	return enumerate(words, len(list))
}

func notReady(list []fleet.NonReadyStatus) string {
	var words []string
	for _, n := range list[:min(len(list), maxObjects)] {
		why := strings.Join(n.Summary.Message, ", ")
		words = append(words, object(n.Kind, n.Namespace, n.Name)+": "+cmp.Or(why, n.Summary.State, "not ready"))
	}
	return enumerate(words, len(list))
}

func enumerate(words []string, total int) string {
	if more := total - len(words); more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(words, "; ")
}

func object(kind, namespace, name string) string {
	if namespace == "" {
		return kind + " " + name
	}
	return kind + " " + namespace + "/" + name
}

func short(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessage], "") + "…"
}

// Entry is how one deployment stands, for a summary.
type Entry struct {
	// Name of what it is about: of a Cluster in the summary of a Bundle, of a Bundle in that of a Cluster.
	Name    string
	State   fleet.BundleState
	Message string
	// Deployment, if there is one; its lists are shown.
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
		named := fleet.NonReadyResource{Name: e.Name, State: e.State, Message: e.Message}
		if d := e.Deployment; d != nil {
			for _, m := range d.Status.ModifiedStatus[:min(len(d.Status.ModifiedStatus), maxObjects)] {
				m.Patch = "" // it may hold what is in a Secret
				named.ModifiedStatus = append(named.ModifiedStatus, m)
			}
			named.NonReadyStatus = slices.Clone(d.Status.NonReadyStatus[:min(len(d.Status.NonReadyStatus), maxObjects)])
		}
		summary.NonReadyResources = append(summary.NonReadyResources, named)
	}
	return summary
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

// Worst returns the worst state that is counted, Ready if there is none.
func Worst(summary fleet.BundleSummary) fleet.BundleState {
	for _, state := range severity {
		if *count(&summary, state) > 0 {
			return state
		}
	}
	return fleet.StateReady
}

// Ready is the text `ready/desired`.
func Ready(summary fleet.BundleSummary) string {
	return fmt.Sprintf("%d/%d", summary.Ready, summary.DesiredReady)
}

// Explain says in a line what is not ready: each state with its count and those that are named, called by what they are.
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
	}
	return &s.Ready
}
