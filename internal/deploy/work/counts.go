package work

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/delivery/protocol"
)

// Counted results.
const (
	countApplied, countFailed, countCompared, countRemoved = "applied", "failed", "compared", "removed"
)

// counts are the results since the last call of Counted.
type counts struct {
	mu    sync.Mutex
	now   map[string]int
	works map[string]int
}

func (t *counts) count(result string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.now == nil {
		t.now = map[string]int{}
	}
	t.now[result]++
}

// news returns a Tally, and whether it has changed.
func (t *counts) news(works []placement.Work) (protocol.Tally, bool) {
	states := map[string]int{}
	for i := range works {
		states[stateOf(&works[i])]++
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.now) == 0 && maps.Equal(t.works, states) {
		return protocol.Tally{}, false
	}
	tally := protocol.Tally{Works: states, Manifests: t.now}
	t.now, t.works = nil, states
	return tally, true
}

// stateOf returns the state of a Work in one word.
func stateOf(work *placement.Work) string {
	conditions := work.Status.Conditions
	for _, kind := range []string{placement.ConditionApplied, placement.ConditionDiffReported} {
		if meta.IsStatusConditionFalse(conditions, kind) {
			return "Failing"
		}
	}
	switch {
	case meta.IsStatusConditionTrue(conditions, placement.ConditionDiffReported):
		return "Compared"
	case meta.IsStatusConditionTrue(conditions, placement.ConditionAvailable):
		return "Available"
	case meta.IsStatusConditionTrue(conditions, placement.ConditionApplied):
		return "Applied"
	}
	return "Pending"
}
