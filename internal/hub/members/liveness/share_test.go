package liveness

import (
	"fmt"
	"slices"
	"testing"
)

// TestAShareIsCalmWhileATenthIsOffline counts a member of a workspace in the workspace and in the
// hub, and announces those that waited for the share.
func TestAShareIsCalmWhileATenthIsOffline(t *testing.T) {
	tracker, changes, step := start()
	drain := func() (names []string) {
		for {
			select {
			case e := <-changes:
				names = append(names, e.Object.GetName())
			default:
				slices.Sort(names)
				return names
			}
		}
	}
	for i := range 20 {
		name := fmt.Sprintf("m%02d", i)
		tracker.Track(name, period, false)
		tracker.Count(name, "clusters")
		tracker.Count(name, "clusters") // a second reconcile counts nothing
	}
	tracker.Track("alone", period, false)
	if tracker.Calm("alone") {
		t.Error("a member that is not counted is calm")
	}
	tracker.Count("alone", "")
	if tracker.Calm("m00") {
		t.Error("a hub that has seen no heartbeat since its start is calm")
	}
	beat := func(names ...string) {
		for _, name := range names {
			tracker.Beat(name, InLease, tracker.clock.Now())
		}
	}
	for i := 2; i < 19; i++ {
		beat(fmt.Sprintf("m%02d", i))
	}
	if drain(); tracker.Calm("m00") { // 3 of 20, and 4 of 21
		t.Error("it is calm with 3 of 20 offline")
	}
	beat("m19")
	if got := drain(); slices.Contains(got, "m00") { // 2 of 20, and 3 of 21
		t.Error("the hub is not calm, and announces")
	}
	beat("alone") // 2 of 21
	if got := drain(); !slices.Equal(got, []string{"alone", "m00"}) {
		t.Errorf("announced %v", got)
	}
	if !tracker.Calm("m00") || !tracker.Calm("m01") {
		t.Error("it is not calm with 2 of 20 offline")
	}

	step(3 * period)
	if drain(); tracker.Calm("m00") || tracker.Calm("m05") {
		t.Error("it is calm with all offline")
	}
	for i := 2; i < 19; i++ {
		beat(fmt.Sprintf("m%02d", i))
	}
	beat("alone")
	if drain(); tracker.Calm("m05") { // 3 of 20, and 3 of 21
		t.Error("it is calm with 3 of 20 offline")
	}
	tracker.Forget("m00") // 2 of 19, and 2 of 20
	if got := drain(); !slices.Equal(got, []string{"m05"}) {
		t.Errorf("the hub announced %v", got)
	}
	if tracker.Calm("m05") {
		t.Error("the workspace is calm with 2 of 19 offline")
	}
	tracker.Forget("m01")
	if got := drain(); !slices.Equal(got, []string{"m05"}) || !tracker.Calm("m05") {
		t.Errorf("announced %v", got)
	}
	for i := 2; i < 20; i++ {
		tracker.Forget(fmt.Sprintf("m%02d", i))
	}
	if len(tracker.workspaces) > 0 || tracker.hub.members != 1 {
		t.Errorf("it keeps %v, and %d members", tracker.workspaces, tracker.hub.members)
	}
}
