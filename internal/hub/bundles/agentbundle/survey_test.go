package agentbundle

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// inWorkspaces is a fleet whose agents are named by workspace/name.
func inWorkspaces(agents map[string]agent) *rollout {
	r := newRollout()
	for name, a := range agents {
		workspace, name, _ := strings.Cut(name, "/")
		r.add(types.NamespacedName{Namespace: workspace, Name: name}, a, now)
	}
	r.admit(now)
	return r
}

// many are n agents of a workspace.
func many(workspace string, n int, a agent) map[string]agent {
	agents := map[string]agent{}
	for i := range n {
		agents[fmt.Sprintf("%s/z%04d", workspace, i)] = a
	}
	return agents
}

func onlyOwnSettings(a *agent) { a.before = a.sent.common }

// TestOneWorkspaceStopsTheUpdateOfNoOther has tenants break the agents of their own Clusters.
func TestOneWorkspaceStopsTheUpdateOfNoOther(t *testing.T) {
	unfit := at(fresh, fresh, failing)
	for _, row := range []struct {
		name   string
		agents map[string]agent
		// sends is how many more of workspace w are sent the version, state why the next one waits.
		sends int
		state State
	}{
		{
			"one failure among a thousand that have confirmed",
			and(and(many("w", 10, at(old, fresh)), many("x", 1000, at(fresh, fresh))), many("evil", 1, unfit)), 10, "",
		},
		{
			"a whole workspace that fails", and(and(many("w", 10, at(old, fresh)), many("x", 1000, at(fresh, fresh))), many("evil", 500, unfit)), 10,
			"",
		},
		{
			"a whole workspace that falls silent", and(and(many("w", 10, at(old, fresh)), many("x", 10, at(fresh, fresh))),
				many("evil", 10, at(fresh, fresh, failing, offline))), 1, WaitingForTurn,
		},
		{"the first to try a version", and(many("w", 10, at(old, fresh)), many("evil", 1, unfit)), 1, WaitingForTurn},
		{
			"the first two, in two workspaces", and(and(many("w", 10, at(old, fresh)), many("evil", 1, unfit)), many("x", 1, unfit)), 0,
			RolloutStopped,
		},
		{
			"less than a tenth, in two workspaces",
			and(and(and(many("w", 10, at(old, fresh)), many("x", 100, at(fresh, fresh))), many("evil", 5, unfit)), many("y", 1, unfit)), 10, "",
		},
		{
			"a tenth, in two workspaces", and(and(and(many("w", 10, at(old, fresh)), many("x", 90, at(fresh, fresh))), many("evil", 9, unfit)),
				many("y", 1, unfit)), 0, RolloutStopped,
		},
		{"own settings that are wrong, in two workspaces", and(and(and(many("w", 10, at(old, fresh)), many("x", 10, at(fresh, fresh))),
			many("evil", 9, at(fresh, fresh, failing, onlyOwnSettings))), many("y", 9, at(fresh, fresh, failing, onlyOwnSettings))), 3,
			WaitingForTurn},
	} {
		r := inWorkspaces(row.agents)
		sends, state := 0, State("")
		for name, a := range row.agents {
			workspace, name, _ := strings.Cut(name, "/")
			key := types.NamespacedName{Namespace: workspace, Name: name}
			switch {
			case workspace != "w":
			case r.agents[key] != a:
				sends++
			default:
				state = r.waiting[groupOf(a)].result.state
			}
		}
		if sends != row.sends || state != row.state {
			t.Errorf("%s: %d are sent the version, want %d; the others say %q, want %q", row.name, sends, row.sends, state, row.state)
		}
	}
}

// TestAVersionIsTriedAgainInNoWorkspaceInWhichItFailed leaves no workspace in which it did not.
func TestAVersionIsTriedAgainInNoWorkspaceInWhichItFailed(t *testing.T) {
	r := inWorkspaces(and(and(many("evil", 10, at(old, fresh)), many("evil", 1, at(fresh, fresh, failing))),
		many("w", 1, at(old, fresh, offline))))
	if got := r.waiting[groupOf(at(old, fresh))].result; got.state != RolloutStopped || got.behind.Name != "z0000" {
		t.Errorf("those of that workspace are %+v", got)
	}
}

func TestAnAgentWhoseOwnSettingsAreNewRemembersWhatItRan(t *testing.T) {
	a := at(fresh, version{"new", "b"}).sending(now)
	if a.before != "new" {
		t.Errorf("it ran %q", a.before)
	}
	a.desired, a.failure = version{"new", "c"}, "no such image"
	if a = a.sending(now); a.before != "new" {
		t.Errorf("after a failure it ran %q", a.before)
	}
}

func TestAllWhoFailedAreNamedUpToANumber(t *testing.T) {
	failed := make([]types.NamespacedName, 30)
	for i := range failed {
		failed[i] = key(fmt.Sprintf("c%02d", i))
	}
	o := observed{cluster: &fleet.Cluster{}}
	c, _ := describe(o, decision{state: RolloutStopped, behind: failed[0], failed: 16}, failed, "")
	for _, says := range []string{"the agent of Cluster clusters/c00 did not come back", "clusters/c01, ", "clusters/c09 and 20 more"} {
		if !strings.Contains(c.Message, says) {
			t.Errorf("%q is missing in %q", says, c.Message)
		}
	}
	if c, _ = describe(o, decision{state: RolloutStopped, behind: failed[0]}, nil, ""); strings.Contains(c.Message, "the same") {
		t.Errorf("of one it says %q", c.Message)
	}
}
