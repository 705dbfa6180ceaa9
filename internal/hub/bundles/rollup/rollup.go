// Package rollup computes the counts and texts in the status of Bundles, Clusters and
// ClusterGroups from their BundleDeployments. It writes nothing.
//
// Its invariant: text written by members is bounded before it is shown, and the contents of their
// objects are never shown.
package rollup

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// maxNamed limits the entries named in a summary.
	maxNamed = 10
	// maxObjects limits the objects named for each entry.
	maxObjects = 3
	// maxState limits the length of an object's state.
	maxState = 64
)

// severity lists the bundle states, the worst first, in Rancher Fleet's order.
var severity = []fleet.BundleState{
	fleet.StateErrApplied, fleet.StateWaitApplied, fleet.StateModified, fleet.StateOutOfSync, fleet.StatePending,
	fleet.StateNotReady, fleet.StateWaitingForDependency, fleet.StateReady,
}

// Entry is one deployment in a summary.
type Entry struct {
	// Name is the name of a Cluster in the summary of a Bundle, and of a Bundle in the summary of
	// a Cluster.
	Name    string
	State   fleet.BundleState
	Message string
	// Deployment is optional. Summarize copies its modified and unready objects.
	Deployment *fleet.BundleDeployment
	// Gone: the entry repeats the last report of an agent without further ones.
	Gone bool
}

// AsOf marks an entry as the last report of a stopped agent. gone is the reason, seen is its last
// heartbeat. The last report does not count as Ready. States known to the hub itself stay.
func (e Entry) AsOf(gone string, seen time.Time) Entry {
	switch e.State {
	case fleet.StateReady:
		e.State, e.Message = fleet.StateNotReady, membership.AsOf(gone, seen, string(fleet.StateReady))
	case fleet.StateNotReady, fleet.StateModified, fleet.StateErrApplied, fleet.StateWaitApplied, fleet.StateWaitingForDependency:
		e.Message = membership.AsOf(gone, seen, cmp.Or(e.Message, string(e.State)))
	case fleet.StatePending, fleet.StateOutOfSync, fleet.StatePaused, fleet.StateOutsideWindow:
		return e
	}
	e.Gone = true
	return e
}

// Shown returns the columns of the entry's deployment.
func (e Entry) Shown() fleet.BundleDeploymentDisplay {
	display := delivery.Display(e.Deployment)
	if e.Gone {
		display.State, display.Monitored = string(delivery.Wire(e.State)), delivery.Short("Unknown: "+e.Message)
	}
	return display
}

// AllGone reports whether at least one entry repeats a last report, and all unready entries do.
func AllGone(entries []Entry) bool {
	some := false
	for _, e := range entries {
		if e.State != fleet.StateReady && !e.Gone {
			return false
		}
		some = some || e.Gone
	}
	return some
}

// Unconfirmed moves the ready resources of a last report to Unknown.
func Unconfirmed(counts fleet.ResourceCounts) fleet.ResourceCounts {
	counts.Unknown += counts.Ready
	counts.Ready = 0
	return counts
}

// Summarize counts entries by state and names the worst unready ones.
func Summarize(entries []Entry) fleet.BundleSummary {
	var summary fleet.BundleSummary
	var bad []Entry
	for _, e := range entries {
		*count(&summary, delivery.Wire(e.State))++
		switch e.State {
		case fleet.StatePaused:
			summary.Paused++
		case fleet.StateOutsideWindow:
			summary.OutsideWindow++
		default: // not part of another count
		}
		summary.DesiredReady++
		if e.State != fleet.StateReady {
			bad = append(bad, e)
		}
	}
	sortBySeverity(bad)
	for _, e := range diverse(bad) {
		named := fleet.NonReadyResource{Name: e.Name, State: delivery.Wire(e.State), Message: delivery.Short(e.Message)}
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

func sortBySeverity(entries []Entry) {
	slices.SortStableFunc(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(rank(delivery.Wire(a.State)), rank(delivery.Wire(b.State))), cmp.Compare(a.Name, b.Name))
	})
}

// Clipped returns the first few unready objects, each with its first few messages. Long messages
// are cut, because a member writes them.
func Clipped(list []fleet.NonReadyStatus, most int) []fleet.NonReadyStatus {
	list = slices.Clone(list[:min(len(list), most)])
	for i := range list {
		s := &list[i].Summary
		s.State = kube.Clip(s.State, maxState)
		var messages []string
		for _, m := range s.Message[:min(len(s.Message), maxObjects)] {
			messages = append(messages, delivery.Short(m))
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
	to.Paused += other.Paused
	to.OutsideWindow += other.OutsideWindow
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

// Reason returns the worst state for a condition. It distinguishes Paused and OutsideWindow,
// although both count as Pending.
func Reason(summary fleet.BundleSummary) string {
	worst := Worst(summary)
	switch {
	case worst != fleet.StatePending || summary.Pending > summary.Paused+summary.OutsideWindow:
		return string(worst)
	case summary.OutsideWindow > 0:
		return string(fleet.StateOutsideWindow)
	}
	return string(fleet.StatePaused)
}

// Ready returns the text `ready/desired`.
func Ready(summary fleet.BundleSummary) string {
	return fmt.Sprintf("%d/%d", summary.Ready, summary.DesiredReady)
}

func rank(state fleet.BundleState) int { return slices.Index(severity, state) }

// count returns the counter of a state of Rancher Fleet.
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
	case fleet.StatePending, fleet.StatePaused, fleet.StateOutsideWindow:
		return &s.Pending
	case fleet.StateWaitingForDependency:
		return &s.WaitingForDependency
	case fleet.StateNotReady:
		return &s.NotReady
	case fleet.StateReady:
	}
	return &s.Ready
}
