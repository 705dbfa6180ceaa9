package bundle

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-fleet/muster/internal/delivery/protocol"
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

func TestWhatCannotBeRemovedIsReportedWhenThatChanges(t *testing.T) {
	var reported []protocol.Blocked
	d := &Deployer{Blocked: func(b protocol.Blocked, _ []applied.Kept) { reported = append(reported, b) }}
	d.setProblem("web", reasons.RemovalUnconfirmed, "waiting")
	d.setProblem("web", reasons.RemovalUnconfirmed, "waiting")
	d.setProblem("db", reasons.RemovalBlocked, "forbidden")
	d.setProblem("app", reasons.RemovalBlocked, "held")
	d.clearProblem("app")
	d.clearProblem("db")
	d.clearProblem("web")
	d.clearProblem("web")
	want := []protocol.Blocked{
		{Reason: "RemovalUnconfirmed", Message: "waiting"},
		{Reason: "RemovalBlocked", Message: "forbidden; and 1 more"},
		{Reason: "RemovalBlocked", Message: "held; and 2 more"},
		{Reason: "RemovalBlocked", Message: "forbidden; and 1 more"},
		{Reason: "RemovalUnconfirmed", Message: "waiting"},
		{},
	}
	if diff := cmp.Diff(want, reported); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
