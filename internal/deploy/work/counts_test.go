package work

import (
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/delivery/protocol"
)

func TestOnlyNewsAreCounted(t *testing.T) {
	work := func(conditions ...metav1.Condition) placement.Work {
		return placement.Work{Status: placement.WorkStatus{Conditions: conditions}}
	}
	is := func(kind string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status}
	}
	works := []placement.Work{
		work(), work(is("Applied", "False")), work(is("Applied", "True"), is("Available", "False")),
		work(is("Applied", "True"), is("Available", "True")),
		work(is("DiffReported", "True")), work(is("DiffReported", "False")),
	}
	var counted counts
	counted.count(countApplied)
	counted.count(countApplied)
	counted.count(countFailed)
	want := protocol.Tally{
		Works:     map[string]int{"Pending": 1, "Failing": 2, "Applied": 1, "Available": 1, "Compared": 1},
		Manifests: map[string]int{"applied": 2, "failed": 1},
	}
	got, _ := counted.news(works)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if again, is := counted.news(works); is {
		t.Errorf("it is counted once more: %+v", again)
	}
	if gone, is := counted.news(nil); !is || len(gone.Works)+len(gone.Manifests) > 0 {
		t.Errorf("when all Works are gone, the tally is %+v", gone)
	}
}

// counted adds up what the agent reports.
type counted struct {
	mu    sync.Mutex
	works map[string]int
	done  map[string]int
}

func (c *counted) take(t protocol.Tally) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = map[string]int{}
	}
	c.works = t.Works
	for result, count := range t.Manifests {
		c.done[result] += count
	}
}

// untilCounted waits until the agent has reported the states of its Works and what it did.
func (r *rig) untilCounted(works, done map[string]int) {
	r.t.Helper()
	r.eventually("the agent reports what it did", func() error {
		r.counted.mu.Lock()
		defer r.counted.mu.Unlock()
		if !maps.Equal(r.counted.works, works) || !maps.Equal(r.counted.done, done) {
			return fmt.Errorf("it reported %v, %v, want %v, %v", r.counted.works, r.counted.done, works, done)
		}
		return nil
	})
}
