package dashboard

import (
	"cmp"
	"slices"
	"strings"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// sharedCause is a problem of several members, in the same state and with the same text.
type sharedCause struct {
	State, Text string
	// Count members have it; some of them are named.
	Count   int
	Members []link
	More    int
}

// causesOf groups members by their problem, the most frequent first. A problem of one single member
// stays in the table of members.
func causesOf(targets []target) (causes []sharedCause) {
	places := map[[2]string]int{}
	for _, t := range targets {
		if t.State == view.StateReady {
			continue
		}
		key := [2]string{t.State, strings.ReplaceAll(t.Text, t.Name, "the member")}
		i, exists := places[key]
		if !exists {
			i = len(causes)
			places[key] = i
			causes = append(causes, sharedCause{State: t.State, Text: key[1]})
		}
		causes[i].Members = append(causes[i].Members, link{t.Name, t.Path})
		causes[i].Count++
	}
	causes = slices.DeleteFunc(causes, func(c sharedCause) bool { return c.Count < 2 })
	slices.SortStableFunc(causes, func(a, b sharedCause) int { return cmp.Compare(b.Count, a.Count) })
	for i := range causes {
		causes[i].Members, causes[i].More = atMost(mostNamed, causes[i].Members)
	}
	return causes
}

// bundleMember returns the page of a Cluster in the status of a Bundle. The name of a Cluster in
// the Bundle's own workspace has no workspace.
func bundleMember(b *fleet.Bundle, name string) string {
	if !strings.Contains(name, "/") {
		name = b.Namespace + "/" + name
	}
	return memberPath(name)
}

// driftsOf returns the objects with drift on a member.
func driftsOf(changed []fleet.ModifiedStatus) (drifts []branch) {
	for _, c := range changed {
		drifts = append(drifts, branch{
			Name:  objectTitle(c.Kind, c.Namespace, c.Name),
			State: modification(c), Diff: patchDiff(c.Kind, c.Patch),
		})
	}
	return drifts
}
