package reconnect

import (
	"fmt"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/muster-fleet/muster/internal/hub/controller"
)

// TestTokensOfWorkspacesForWhichNobodyAsksAreForgotten has workspaces come and go.
func TestTokensOfWorkspacesForWhichNobodyAsksAreForgotten(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	i := New(controller.Deps{Clock: clock})
	known := func() (count int) {
		i.workspaces.Range(func(any, any) bool { count++; return true })
		return count
	}
	for day := range 10 {
		for n := range 100 {
			i.workspaces.Store(fmt.Sprintf("clusters-%d-%d", day, n), &workspace{token: "t", issued: clock.Now()})
		}
		i.workspaces.Store(fmt.Sprintf("failed-%d", day), &workspace{failed: clock.Now()})
		busy := &workspace{}
		busy.mu.Lock()
		i.workspaces.Store("busy", busy)
		i.sweep(clock.Now())
		if count := known(); count != 102 {
			t.Errorf("on day %d %d workspaces are known, want those of the day", day, count)
		}
		clock.Step(sharedFor)
	}
}
