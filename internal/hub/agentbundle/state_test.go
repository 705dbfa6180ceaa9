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

// at is a well agent that was told one version, has come back with it, and should be another.
func at(told, wanted version, changes ...func(*member)) member {
	m := member{online: true, well: true, told: told, wanted: wanted, toldAt: now.Add(-time.Hour), back: told != version{}}
	for _, change := range changes {
		change(&m)
	}
	return m
}

func away(since time.Duration) func(*member) {
	return func(m *member) { m.back, m.toldAt = false, now.Add(-since) }
}

func failing(m *member)  { m.back, m.failure = false, "no such image" }
func offline(m *member)  { m.online, m.lost = false, true }
func starting(m *member) { m.online = false }
func unwell(m *member)   { m.well = false }

// of are n agents with names that come after all others.
func of(n int, m member) map[string]member {
	members := map[string]member{}
	for i := range n {
		members[fmt.Sprintf("z%03d", i)] = m
	}
	return members
}

func and(members map[string]member, more map[string]member) map[string]member {
	for name, m := range more {
		members[name] = m
	}
	return members
}

func TestPlan(t *testing.T) {
	for _, row := range []struct {
		name    string
		members map[string]member
		// want of those named; the others are counted by state.
		want  map[string]verdict
		tells int
	}{
		{"an agent that is what it should be is left alone", of(1, at(fresh, fresh)), map[string]verdict{"z000": {state: UpToDate}}, 0},
		{"the only agent is told at once", of(1, at(old, fresh)), nil, 1},
		{"an agent that has just joined an idle fleet is told at once", and(of(30, at(fresh, fresh)), map[string]member{"a": at(version{}, fresh)}), nil, 1},
		{"of many that have just joined a tenth is told", and(of(30, at(fresh, fresh)), of(20, at(version{}, fresh))), nil, 3},
		{"what is new is tried on one first", of(100, at(old, fresh)), map[string]verdict{"z000": {state: tell}, "z001": {state: WaitingForTurn, behind: key("z000")}}, 1},
		{"that is one with which nothing is wrong", and(of(100, at(old, fresh)), map[string]member{"a": at(old, fresh, unwell)}),
			map[string]verdict{"a": {state: WaitingForTurn, behind: key("z000")}, "z000": {state: tell}}, 1},
		{"or any, if something is wrong with all", of(3, at(old, fresh, unwell)), map[string]verdict{"z000": {state: tell}}, 1},
		{"while it is away, the others wait for it", and(of(100, at(old, fresh)), map[string]member{"m": at(fresh, fresh, away(time.Minute))}),
			map[string]verdict{"m": {state: Updating, wake: now.Add(4 * time.Minute)}, "z000": {state: WaitingForTurn, behind: key("m")}}, 0},
		{"when it is back, a tenth is told", and(of(99, at(old, fresh)), map[string]member{"m": at(fresh, fresh)}), nil, 10},
		{"no more than a tenth is away at a time", and(of(91, at(old, fresh)), map[string]member{
			"a": at(fresh, fresh), "b": at(fresh, fresh, away(time.Minute)), "c": at(fresh, fresh, away(time.Minute)),
		}), nil, 7},
		{"one that does not come back stops all", and(of(50, at(old, fresh)), map[string]member{"a": at(fresh, fresh), "b": at(fresh, fresh, away(patience))}),
			map[string]verdict{"b": {state: DidNotComeBack}, "z000": {state: RolloutStopped, behind: key("b")}}, 0},
		{"so does one that says that it failed, at once", and(of(50, at(old, fresh)), map[string]member{"b": at(fresh, fresh, failing)}),
			map[string]verdict{"b": {state: DidNotComeBack}, "z000": {state: RolloutStopped, behind: key("b")}}, 0},
		{"who is away may always be told something newer", and(of(50, at(old, mended)), map[string]member{"b": at(fresh, mended, failing)}),
			map[string]verdict{"b": {state: tell}, "z000": {state: tell}}, 2},
		{"a stop is no concern of settings that are one Cluster's own", and(of(50, at(old, fresh)), map[string]member{
			"b": at(fresh, fresh, failing), "c": at(version{"old", "b"}, version{"old", "c"}),
		}), map[string]verdict{"c": {state: tell}}, 1},
		{"nor of a Cluster that joins with what others are well with", and(of(50, at(old, fresh)), map[string]member{
			"a": at(fresh, fresh), "b": at(fresh, fresh, failing), "c": at(version{}, fresh),
		}), map[string]verdict{"c": {state: tell}}, 1},
		{"an agent that is offline waits for its return, and nobody for it", and(of(2, at(old, fresh)), map[string]member{"a": at(old, fresh, offline)}),
			map[string]verdict{"a": {state: Offline}, "z000": {state: tell}}, 1},
		{"so does one of which a hub that has just started has not heard", of(1, at(old, fresh, starting)), map[string]verdict{"z000": {state: WaitingForTurn}}, 0},
		{"one that was told and fell silent holds its place", and(of(38, at(old, fresh)), map[string]member{
			"a": at(fresh, fresh), "b": at(fresh, fresh, away(time.Hour), offline),
		}), map[string]verdict{"b": {state: DidNotComeBack}, "z000": {state: tell}, "z037": {state: WaitingForTurn}}, 3},
		{"and stops all if there is no other place", and(of(10, at(old, fresh)), map[string]member{
			"a": at(fresh, fresh), "b": at(fresh, fresh, away(time.Hour), offline),
		}), map[string]verdict{"b": {state: DidNotComeBack}, "z000": {state: RolloutStopped, behind: key("b")}}, 0},
		{"or if its own settings have changed since", and(of(10, at(old, fresh)), map[string]member{
			"b": at(fresh, version{"new", "b"}, away(time.Hour), offline),
		}), map[string]verdict{"b": {state: Offline}, "z000": {state: RolloutStopped, behind: key("b")}}, 0},
		{"but not if nobody is told any more what it was told", and(of(10, at(old, fresh)), map[string]member{
			"b": at(old, fresh, away(time.Hour), offline), "c": at(mended, fresh, away(time.Hour), offline),
		}), map[string]verdict{"b": {state: Offline}, "z000": {state: tell}, "z001": {state: WaitingForTurn, behind: key("z000")}}, 1},
		{"and stops all if it was the first", and(of(100, at(old, fresh)), map[string]member{"b": at(fresh, fresh, away(time.Hour), offline)}),
			map[string]verdict{"z000": {state: RolloutStopped, behind: key("b")}}, 0},
		{"but not a Cluster that joins", map[string]member{"a": at(version{}, fresh), "b": at(fresh, fresh, away(time.Hour), offline)},
			map[string]verdict{"a": {state: tell}}, 1},
		{"who is left alone stops nobody", and(of(1, at(old, fresh)), map[string]member{"b": at(fresh, fresh, failing, func(m *member) { m.unmanaged = NotManaged })}),
			map[string]verdict{"b": {state: NotManaged}, "z000": {state: tell}}, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			members := map[types.NamespacedName]member{}
			for name, m := range row.members {
				members[key(name)] = m
			}
			verdicts := plan(members, now)
			told := 0
			for _, v := range verdicts {
				if v.state == tell {
					told++
				}
			}
			if told != row.tells {
				t.Errorf("%d are told, want %d", told, row.tells)
			}
			for name, want := range row.want {
				if diff := cmp.Diff(want, verdicts[key(name)], cmp.AllowUnexported(verdict{})); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			}
		})
	}
}

// TestARolloutReachesAllAndIsNeverTooMany plays a fleet whose agents come back one after the other.
func TestARolloutReachesAllAndIsNeverTooMany(t *testing.T) {
	const fleet = 200
	table := &table{}
	table.fill(map[types.NamespacedName]member{})
	members := map[types.NamespacedName]member{}
	for name, m := range of(fleet, at(old, fresh)) {
		members[key(name)] = m
		table.members[key(name)] = at(old, old)
	}
	var abroad []types.NamespacedName
	queue := make([]types.NamespacedName, 0, fleet)
	for k := range members {
		queue = append(queue, k)
	}
	most, done := 0, 0
	for done < fleet {
		if len(queue) == 0 {
			if len(abroad) == 0 {
				t.Fatalf("nobody is away and only %d are updated", done)
			}
			k := abroad[0]
			abroad = abroad[1:]
			m := members[k]
			m.back = true
			members[k] = m
			queue = append(queue, k)
			done++
		}
		k := queue[0]
		queue = queue[1:]
		said, others := table.put(k, members[k], now)
		queue = append(queue, others...)
		if said.state == tell {
			m := members[k]
			m.told, m.toldAt, m.back = m.wanted, now, false
			members[k] = m
			abroad = append(abroad, k)
			most = max(most, len(abroad))
		}
	}
	if most != fleet/part {
		t.Errorf("at most %d were away, want %d", most, fleet/part)
	}
}

func BenchmarkPlanOfAThousand(b *testing.B) {
	members := map[types.NamespacedName]member{}
	for name, m := range of(1000, at(old, fresh)) {
		members[key(name)] = m
	}
	members[key("first")] = at(fresh, fresh)
	for b.Loop() {
		plan(members, now)
	}
}
