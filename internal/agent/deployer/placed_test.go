package deployer

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func placedAt(generation int64) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "fleet-agent-a", Generation: generation}}
}

func TestWhatRestsNeedsNoProgramUntilItChanges(t *testing.T) {
	changed := make(chan struct{}, 1)
	p := NewPlaced(Bundles, changed)
	notified := func() bool {
		select {
		case <-changed:
			return true
		default:
			return false
		}
	}
	check := func(what string, err error, wanted, notifies bool) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if p.needsProgram() != wanted {
			t.Errorf("%s: the program is wanted: %v", what, p.needsProgram())
		}
		if notified() != notifies {
			t.Errorf("%s: the supervisor was notified: %v", what, !notifies)
		}
	}
	check("a first one", p.Replace([]any{placedAt(1)}, ""), true, true)
	p.setIdle(map[string]int64{"fleet-agent-a": 1})
	check("its status", p.Update(placedAt(1)), false, false)
	check("another generation", p.Update(placedAt(2)), true, true)
	p.setIdle(map[string]int64{"fleet-agent-a": 1})
	check("a rest in an earlier generation", nil, true, false)
	p.setIdle(map[string]int64{"fleet-agent-a": 2})
	check("the rest of the last one", nil, false, false)
	check("its deletion", p.Delete(placedAt(2)), false, true)
	check("another of its name", p.Add(placedAt(2)), true, true)
}
