package deploy

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-fleet/muster/internal/agent/deployer"
)

func TestTheAgentIsToldWhatCannotBeRemovedWhenThatChanges(t *testing.T) {
	var told []deployer.Blocked
	d := &Deployer{Blocked: func(b deployer.Blocked) { told = append(told, b) }}
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
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
