package agentbundle

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

var (
	now    = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	old    = version{"old", "a"}
	fresh  = version{"new", "a"}
	mended = version{"mended", "a"}
)

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "clusters", Name: name}
}

// at is the agent of a ready Cluster that has confirmed one version and should have another.
func at(sent, desired version, changes ...func(*agent)) agent {
	a := agent{online: true, ready: true, sent: sent, desired: desired, sentAt: now.Add(-time.Hour), confirmed: sent != version{}}
	for _, change := range changes {
		change(&a)
	}
	return a
}

func inFlight(since time.Duration) func(*agent) {
	return func(a *agent) { a.confirmed, a.sentAt = false, now.Add(-since) }
}

func failing(a *agent)  { a.confirmed, a.failure = false, "no such image" }
func offline(a *agent)  { a.online, a.lost = false, true }
func starting(a *agent) { a.online = false }
func notReady(a *agent) { a.ready = false }
func outside(a *agent)  { a.outside = true }

// of are n agents with names that come after all others.
func of(n int, m agent) map[string]agent {
	agents := map[string]agent{}
	for i := range n {
		agents[fmt.Sprintf("z%03d", i)] = m
	}
	return agents
}

func and(agents map[string]agent, more map[string]agent) map[string]agent {
	for name, m := range more {
		agents[name] = m
	}
	return agents
}

func fleetOf(agents map[string]agent) *rollout {
	r := newRollout()
	for name, a := range agents {
		r.add(key(name), a, now)
	}
	return r
}

func TestWhoIsAdmitted(t *testing.T) {
	for _, row := range []struct {
		name   string
		agents map[string]agent
		// want of those named; the others are counted by state.
		want  map[string]decision
		sends int
	}{
		{"an agent that is what it should be is left alone", of(1, at(fresh, fresh)), map[string]decision{"z000": {state: UpToDate}}, 0},
		{"the only agent is sent the version at once", of(1, at(old, fresh)), nil, 1},
		{"so is an agent that has just joined an idle fleet", and(of(30, at(fresh, fresh)), map[string]agent{"a": at(version{}, fresh)}), nil, 1},
		{"of many that have just joined a tenth is", and(of(30, at(fresh, fresh)), of(20, at(version{}, fresh))), nil, 3},
		{
			"what is new is tried on one first", of(100, at(old, fresh)),
			map[string]decision{"z000": {state: send}, "z001": {state: WaitingForTurn, behind: key("z000")}}, 1,
		},
		{"that is one of a ready Cluster", and(of(100, at(old, fresh)), map[string]agent{"a": at(old, fresh, notReady)}),
			map[string]decision{"a": {state: WaitingForTurn, behind: key("z000")}, "z000": {state: send}}, 1},
		{"or any, if none is ready", of(3, at(old, fresh, notReady)), map[string]decision{"z000": {state: send}}, 1},
		{"while its update is in flight, the others wait for it", and(of(100, at(old, fresh)), map[string]agent{
			"m": at(fresh, fresh, inFlight(time.Minute)),
		}),
			map[string]decision{"m": {state: Updating, wake: now.Add(4 * time.Minute)}, "z000": {state: WaitingForTurn, behind: key("m")}}, 0},
		{"when it has confirmed the version, a tenth is admitted", and(of(99, at(old, fresh)), map[string]agent{"m": at(fresh, fresh)}), nil, 10},
		{"no more than a tenth is in flight at a time", and(of(91, at(old, fresh)), map[string]agent{
			"a": at(fresh, fresh), "b": at(fresh, fresh, inFlight(time.Minute)), "c": at(fresh, fresh, inFlight(time.Minute)),
		}), nil, 7},
		{"one that is not confirmed in time stops all", and(of(50, at(old, fresh)), map[string]agent{
			"a": at(fresh, fresh), "b": at(fresh, fresh, inFlight(confirmTimeout)),
		}),
			map[string]decision{"b": {state: DidNotComeBack}, "z000": {state: RolloutStopped, behind: key("b")}}, 0},
		{"so does one that says that it failed, at once", and(of(50, at(old, fresh)), map[string]agent{"b": at(fresh, fresh, failing)}),
			map[string]decision{"b": {state: DidNotComeBack}, "z000": {state: RolloutStopped, behind: key("b")}}, 0},
		{"an agent in flight is sent a newer version at once", and(of(50, at(old, mended)), map[string]agent{"b": at(fresh, mended, failing)}),
			map[string]decision{"b": {state: send}, "z000": {state: send}}, 2},
		{"a stop is no concern of settings that are one Cluster's own", and(of(50, at(old, fresh)), map[string]agent{
			"b": at(fresh, fresh, failing), "c": at(version{"old", "b"}, version{"old", "c"}),
		}), map[string]decision{"c": {state: send}}, 1},
		{"nor of a Cluster that joins with a version that others have confirmed", and(of(50, at(old, fresh)), map[string]agent{
			"a": at(fresh, fresh), "b": at(fresh, fresh, failing), "c": at(version{}, fresh),
		}), map[string]decision{"c": {state: send}}, 1},
		{"outside of its window an agent waits, and nobody for it", and(of(2, at(old, fresh)), map[string]agent{"a": at(old, fresh, outside)}),
			map[string]decision{"a": {state: OutsideWindow}, "z000": {state: send}}, 1},
		{"one whose window closed during its update has not failed", and(of(2, at(old, fresh)), map[string]agent{
			"a": at(fresh, fresh, inFlight(confirmTimeout), outside),
		}), map[string]decision{"a": {state: OutsideWindow}, "z000": {state: send}}, 1},
		{"one that is up to date does not care", of(1, at(fresh, fresh, outside)), map[string]decision{"z000": {state: UpToDate}}, 0},
		{"an agent that is offline waits for its return, and nobody for it",
			and(of(2, at(old, fresh)), map[string]agent{"a": at(old, fresh, offline)}),
			map[string]decision{"a": {state: Offline}, "z000": {state: send}}, 1},
		{
			"so does one that a hub which has just started has not seen", of(1, at(old, fresh, starting)),
			map[string]decision{"z000": {state: WaitingForTurn}}, 0,
		},
		{"an agent that falls silent during its update takes up the budget", and(of(38, at(old, fresh)), map[string]agent{
			"a": at(fresh, fresh), "b": at(fresh, fresh, inFlight(time.Hour), offline),
		}), map[string]decision{"b": {state: DidNotComeBack}, "z000": {state: send}, "z037": {state: WaitingForTurn}}, 3},
		{"and stops all if the budget has no room for another", and(of(10, at(old, fresh)), map[string]agent{
			"a": at(fresh, fresh), "b": at(fresh, fresh, inFlight(time.Hour), offline),
		}), map[string]decision{"b": {state: DidNotComeBack}, "z000": {state: RolloutStopped, behind: key("b")}}, 0},
		{"or if its own settings have changed since", and(of(10, at(old, fresh)), map[string]agent{
			"b": at(fresh, version{"new", "b"}, inFlight(time.Hour), offline),
		}), map[string]decision{"b": {state: Offline}, "z000": {state: RolloutStopped, behind: key("b")}}, 0},
		{"but not if its version is sent to nobody any more", and(of(10, at(old, fresh)), map[string]agent{
			"b": at(old, fresh, inFlight(time.Hour), offline), "c": at(mended, fresh, inFlight(time.Hour), offline),
		}), map[string]decision{"b": {state: Offline}, "z000": {state: send}, "z001": {state: WaitingForTurn, behind: key("z000")}}, 1},
		{"and stops all if it was the first", and(of(100, at(old, fresh)), map[string]agent{"b": at(fresh, fresh, inFlight(time.Hour), offline)}),
			map[string]decision{"z000": {state: RolloutStopped, behind: key("b")}}, 0},
		{"but not a Cluster that joins", map[string]agent{"a": at(version{}, fresh), "b": at(fresh, fresh, inFlight(time.Hour), offline)},
			map[string]decision{"a": {state: send}}, 1},
		{"an agent that is left alone stops nobody", and(of(1, at(old, fresh)), map[string]agent{
			"b": at(fresh, fresh, failing, func(a *agent) { a.unmanaged = NotManaged }),
		}),
			map[string]decision{"b": {state: NotManaged}, "z000": {state: send}}, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := fleetOf(row.agents)
			r.admit(now)
			decisions, sends := map[types.NamespacedName]decision{}, 0
			for name, a := range row.agents {
				d := a.decide(now)
				if d.state == "" && r.agents[key(name)] == a {
					d = r.waiting[groupOf(a)].result
				} else if d.state == "" {
					d.state = send
				}
				if decisions[key(name)] = d; d.state == send {
					sends++
				}
			}
			if sends != row.sends {
				t.Errorf("%d are sent a version, want %d", sends, row.sends)
			}
			for name, want := range row.want {
				if diff := cmp.Diff(want, decisions[key(name)], cmp.AllowUnexported(decision{})); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			}
		})
	}
}

// TestARolloutReachesAllWithinTheBudget plays a fleet whose agents confirm their updates
// one after the other.
func TestARolloutReachesAllWithinTheBudget(t *testing.T) {
	const fleet = 200
	r, agents := fleetOf(of(fleet, at(old, old))), map[types.NamespacedName]agent{}
	var queue, flying []types.NamespacedName
	for name, a := range of(fleet, at(old, fresh)) {
		agents[key(name)] = a
		queue = append(queue, key(name))
	}
	most, done := 0, 0
	for done < fleet || len(queue) > 0 {
		if len(queue) == 0 {
			if len(flying) == 0 {
				t.Fatalf("nothing is in flight and only %d are updated", done)
			}
			k := flying[0]
			flying = flying[1:]
			a := agents[k]
			a.confirmed = true
			agents[k] = a
			queue = append(queue, k)
			done++
		}
		k := queue[0]
		queue = queue[1:]
		d, others := r.update(k, agents[k], now)
		queue = append(queue, others...)
		if d.state == send {
			agents[k] = agents[k].sending(now)
			flying = append(flying, k)
			most = max(most, len(flying))
		}
	}
	if most != fleet/agentsPerUpdate {
		t.Errorf("at most %d were in flight, want %d", most, fleet/agentsPerUpdate)
	}
	if len(r.waiting) > 0 || len(r.inFlight) > 0 || r.confirmed["new"] != fleet {
		t.Errorf("%d groups wait, %d agents are in flight, %d have confirmed", len(r.waiting), len(r.inFlight), r.confirmed["new"])
	}
	for k := range agents {
		r.drop(k, now)
	}
	if len(r.agents) > 0 || r.managed != 0 || r.ready != 0 || len(r.confirmed) > 0 {
		t.Errorf("something is left of agents that are gone: %d managed, %d ready, %v", r.managed, r.ready, r.confirmed)
	}
}

// TestOthersAreReconciledWhenTheirDecisionChanges also checks that no other agent is reconciled.
func TestOthersAreReconciledWhenTheirDecisionChanges(t *testing.T) {
	r := fleetOf(and(of(20, at(old, fresh)), map[string]agent{"a": at(fresh, fresh), "b": at(fresh, fresh, inFlight(time.Minute))}))
	if got := len(r.admit(now)); got != 20 {
		t.Fatalf("%d are reconciled at first, want 20: one is admitted, the others show why they wait", got)
	}
	if _, others := r.update(key("a"), at(fresh, fresh), now); len(others) != 0 {
		t.Errorf("%v are reconciled because of nothing", others)
	}
	if _, others := r.update(key("b"), at(fresh, fresh), now); len(others) != 1 || others[0] != key("z001") {
		t.Errorf("%v are reconciled because an update has ended, want z001", others)
	}
	d, others := r.update(key("z001"), at(fresh, fresh, failing), now)
	if d.state != DidNotComeBack || len(others) != 18 {
		t.Errorf("one is %s and %d are reconciled because of that, want the 18 that wait", d.state, len(others))
	}
	if d, _ := r.update(key("z000"), at(old, fresh), now); d.state != RolloutStopped {
		t.Errorf("one that was admitted and not sent the version is %s after the stop", d.state)
	}
}

func BenchmarkAnEventInAFleetOfFiveThousand(b *testing.B) {
	r := fleetOf(and(of(5000, at(old, fresh)), map[string]agent{"first": at(fresh, fresh)}))
	r.admit(now)
	for i := 0; b.Loop(); i++ {
		r.update(key("first"), at(fresh, fresh, func(a *agent) { a.ready = i%2 == 0 }), now)
	}
}
