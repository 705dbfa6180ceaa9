package supervise

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-fleet/muster/internal/delivery/protocol"
)

func placedAt(generation int64) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "fleet-agent-a", Generation: generation}}
}

func TestWhatRestsNeedsNoProgramUntilItChanges(t *testing.T) {
	changed := make(chan struct{}, 1)
	p := NewPlaced(protocol.Bundles, changed)
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

func TestObjectThatComesBackAfterABrokenWatchIsIdleAsItWas(t *testing.T) {
	as := func(uid types.UID, generation int64, version string) *metav1.PartialObjectMetadata {
		object := placedAt(generation)
		object.UID, object.ResourceVersion = uid, version
		return object
	}
	web := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "c", Generation: 1}}
	for name, row := range map[string]struct {
		back  []any
		wants bool
	}{
		"as it was": {[]any{as("a", 3, "90")}, false},
		"with a status that was written meanwhile":  {[]any{as("a", 3, "120")}, false},
		"in another generation":                     {[]any{as("a", 4, "120")}, true},
		"as another object of that name":            {[]any{as("b", 3, "120")}, true},
		"from a hub that was restored":              {[]any{as("a", 3, "80")}, true},
		"with one beside it":                        {[]any{as("a", 3, "90"), web}, true},
		"not at all":                                {nil, false},
		"in the generation before, which is behind": {[]any{as("a", 2, "70")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := NewPlaced(protocol.Bundles, make(chan struct{}, 1))
			check := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			check(p.Replace([]any{as("a", 3, "80")}, ""))
			p.setIdle(map[string]int64{"fleet-agent-a": 3})
			check(p.Update(as("a", 3, "90"))) // its status
			check(p.Replace(row.back, ""))
			if p.needsProgram() != row.wants {
				t.Errorf("the program is needed: %t", !row.wants)
			}
		})
	}
}

func TestObjectThatIsGoneWhileTheWatchIsBrokenIsNotIdleWhenItIsCreatedAgain(t *testing.T) {
	p := NewPlaced(protocol.Bundles, make(chan struct{}, 1))
	first, second := placedAt(1), placedAt(1)
	first.UID, second.UID = "a", "b"
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(p.Replace([]any{first}, ""))
	p.setIdle(map[string]int64{"fleet-agent-a": 1})
	check(p.Replace(nil, ""))
	check(p.Replace([]any{second}, ""))
	if !p.needsProgram() {
		t.Error("the second object needs no program")
	}
}
