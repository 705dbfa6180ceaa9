package controller

import (
	"testing"
	"time"
)

func TestWorkAfterAJoinWaitsWhileManyMembersJoin(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, row := range map[string]struct {
		joining int
		age     time.Duration
		waits   bool
	}{
		"few join":                        {manyJoins - 1, time.Second, false},
		"many join":                       {manyJoins, time.Second, true},
		"many join, for a minute":         {1000, joinsFirst, false},
		"a record of another clock":       {1000, -time.Second, false},
		"many join, the last moment":      {1000, joinsFirst - time.Millisecond, true},
		"many join, a record of long ago": {1000, 24 * time.Hour, false},
	} {
		j := &Joins{}
		j.Set(row.joining)
		if wait := j.Delay(noon.Add(-row.age), noon); wait > 0 != row.waits || wait > joinsFirst-row.age && wait > 0 {
			t.Errorf("%s: it waits for %s", name, wait)
		}
	}
}
