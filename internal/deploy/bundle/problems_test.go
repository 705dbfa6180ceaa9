package bundle

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-fleet/muster/internal/agent/deployer"
)

func TestWhatCannotBeRemovedIsReportedWhenThatChanges(t *testing.T) {
	var reported []deployer.Blocked
	d := &Deployer{Blocked: func(b deployer.Blocked) { reported = append(reported, b) }}
	d.setProblem("web", deployer.ReasonRemovalUnconfirmed, "waiting")
	d.setProblem("web", deployer.ReasonRemovalUnconfirmed, "waiting")
	d.setProblem("db", deployer.ReasonRemovalBlocked, "forbidden")
	d.setProblem("app", deployer.ReasonRemovalBlocked, "held")
	d.clearProblem("app")
	d.clearProblem("db")
	d.clearProblem("web")
	d.clearProblem("web")
	want := []deployer.Blocked{
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
