package controller

import (
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestWorkAfterAJoinWaitsWhileManyMembersJoin(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	member := func(i int) types.NamespacedName { return types.NamespacedName{Namespace: "ws", Name: strconv.Itoa(i)} }
	for name, row := range map[string]struct {
		joining int
		// since is the time since these members began, age the age of the member with the work.
		since, age time.Duration
		waits      bool
	}{
		"few join":                             {manyJoins - 1, time.Second, time.Second, false},
		"many join":                            {manyJoins, time.Second, time.Second, true},
		"many join, for a minute":              {1000, time.Second, joinsFirst, false},
		"many join, the last moment":           {1000, time.Second, joinsFirst - time.Millisecond, true},
		"many join, a member of long ago":      {1000, time.Second, 24 * time.Hour, false},
		"a member of another clock":            {1000, time.Second, -time.Second, false},
		"many began an hour ago and never end": {1000, time.Hour, time.Second, false},
	} {
		j := NewJoins()
		j.Begin(types.NamespacedName{Name: "abandoned"}, noon.Add(-time.Hour))
		for i := range row.joining {
			j.Begin(member(i), noon.Add(-row.since))
		}
		if wait := j.Delay(noon.Add(-row.age), noon); wait > 0 != row.waits || wait > 0 && wait > joinsFirst-row.age {
			t.Errorf("%s: it waits for %s", name, wait)
		}
		for i := range row.joining {
			j.End(member(i))
		}
		if wait := j.Delay(noon.Add(-row.age), noon); wait > 0 {
			t.Errorf("%s: it waits for %s after all have joined", name, wait)
		}
		for range manyJoins { // a repetition
			j.Begin(member(0), noon)
		}
		if wait := j.Delay(noon.Add(-row.age), noon); wait > 0 {
			t.Errorf("%s: it waits for %s while one member joins", name, wait)
		}
	}
}
