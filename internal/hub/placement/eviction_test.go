package placement

import (
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/placement/scheduling"
)

func TestDecideEviction(t *testing.T) {
	number, part := func(n int) *intstr.IntOrString { return ptr.To(intstr.FromInt32(int32(n))) }, func(p string) *intstr.IntOrString {
		return ptr.To(intstr.FromString(p))
	}
	most := func(o *intstr.IntOrString) func(*observedEviction) {
		return func(e *observedEviction) { e.budget = &placement.PlacementDisruptionBudgetSpec{MaxUnavailable: o} }
	}
	least := func(o *intstr.IntOrString) func(*observedEviction) {
		return func(e *observedEviction) { e.budget = &placement.PlacementDisruptionBudgetSpec{MinAvailable: o} }
	}
	pick := func(kind placement.PlacementType, n int32) func(*observedEviction) {
		return func(e *observedEviction) {
			e.placement.Policy = &placement.PlacementPolicy{PlacementType: kind, NumberOfClusters: &n}
		}
	}
	have := func(available, total int) func(*observedEviction) {
		return func(e *observedEviction) { e.totalAvailable, e.total = available, total }
	}
	drains := func(e *observedEviction) { e.drains = true }
	for _, c := range []struct {
		name            string
		change          []func(*observedEviction)
		valid, executed string
		says            string
	}{
		{"nothing bounds it", nil, "True", "True", "no ClusterResourcePlacementDisruptionBudget"},
		{
			"no such placement", []func(*observedEviction){func(e *observedEviction) { e.placement = nil }},
			"False", "", "there is no ClusterResourcePlacement web",
		},
		{
			"a placement that is being deleted", []func(*observedEviction){func(e *observedEviction) { e.placementDeleting = true }},
			"False", "", "is being deleted",
		},
		{
			"a placement that picks by name", []func(*observedEviction){pick(placement.PickFixed, 0)},
			"False", "", "take m out of its spec.policy.clusterNames",
		},
		{
			"a member that is not picked", []func(*observedEviction){func(e *observedEviction) { e.works, e.picked = nil, false }},
			"False", "", "has not picked member m",
		},
		{
			"a picked member that has nothing yet", []func(*observedEviction){func(e *observedEviction) { e.works = nil }},
			"True", "False", "has nothing on member m yet",
		},
		{
			"a member that it is being removed from", []func(*observedEviction){func(e *observedEviction) { e.worksDeleting = true }},
			"True", "False", "or is being removed from it",
		},
		{"one that this eviction removes", []func(*observedEviction){func(e *observedEviction) {
			e.worksDeleting = true
			e.works[0].Annotations = map[string]string{placement.AnnotationEvicted: "u"}
		}, least(number(2))}, "True", "True", "are being removed"},
		{"one that another eviction removes", []func(*observedEviction){func(e *observedEviction) {
			e.worksDeleting = true
			e.works[0].Annotations = map[string]string{placement.AnnotationEvicted: "other"}
		}}, "True", "False", "or is being removed from it"},
		{
			"one that it has removed", []func(*observedEviction){func(e *observedEviction) { e.wasValid, e.works, e.picked = true, nil, false }},
			"True", "True", "are being removed",
		},
		{"enough are left", []func(*observedEviction){least(number(1))}, "True", "True", "2 of 2 were available"},
		{"too few would be left", []func(*observedEviction){least(number(2))}, "True", "False", "availablePlacements: 2, totalPlacements: 2"},
		{
			"too few are available as it is", []func(*observedEviction){least(number(1)), have(1, 2)},
			"True", "False", "availablePlacements: 1, totalPlacements: 2",
		},
		{
			"what is not available cannot become so",
			[]func(*observedEviction){least(number(2)), have(1, 2), func(e *observedEviction) { e.available = false }}, "True", "True", "",
		},
		{"a part of all", []func(*observedEviction){least(part("50%"))}, "True", "False", "is misconfigured"},
		{"a greatest number of all", []func(*observedEviction){most(number(1))}, "True", "False", "is misconfigured"},
		{"a part of N, rounded up", []func(*observedEviction){pick(placement.PickN, 3), least(part("50%")), have(3, 3)}, "True", "True", ""},
		{
			"a part of N that is reached", []func(*observedEviction){pick(placement.PickN, 3), least(part("50%")), have(2, 3)},
			"True", "False", "does not allow it",
		},
		{"a greatest number of N", []func(*observedEviction){pick(placement.PickN, 3), most(number(1)), have(3, 3)}, "True", "True", ""},
		{
			"a greatest number of N that is used up", []func(*observedEviction){pick(placement.PickN, 3), most(number(1)), have(2, 3)},
			"True", "False", "does not allow it",
		},
		{
			"also by members that were not found", []func(*observedEviction){pick(placement.PickN, 3), most(number(1)), have(2, 2)},
			"True", "False", "does not allow it",
		},
		{"nothing may be disrupted", []func(*observedEviction){pick(placement.PickN, 2), most(number(0))}, "True", "False", "does not allow it"},
		{"a drain that no other member takes over", []func(*observedEviction){func(e *observedEviction) {
			e.drains, e.stays = true, "no other member qualifies"
		}}, "False", "", "stays: no other member qualifies"},
		{"a drain without a budget waits as a rollout does", []func(*observedEviction){pick(placement.PickN, 3), have(2, 3), drains},
			"True", "False", "2 of 3 members are available"},
		{"a drain without a budget", []func(*observedEviction){pick(placement.PickN, 3), have(3, 3), drains}, "True", "True", ""},
		{"a drain within a wider budget", []func(*observedEviction){pick(placement.PickN, 3), most(number(2)), have(2, 3), drains},
			"True", "True", ""},
		{"a drain of what works nowhere", []func(*observedEviction){pick(placement.PickN, 3), have(0, 3), drains, func(e *observedEviction) {
			e.available = false
		}}, "True", "True", ""},
		{"a budget that says nothing", []func(*observedEviction){most(nil)}, "True", "True", ""},
	} {
		o := observedEviction{
			uid: "u", spec: placement.PlacementEvictionSpec{PlacementName: "web", ClusterName: "m"}, placement: &placement.PlacementSpec{},
			picked: true, works: []*placement.Work{{}}, available: true, totalAvailable: 2, total: 2,
		}
		for _, change := range c.change {
			change(&o)
		}
		valid, executed := decideEviction(o)
		if string(valid.status) != c.valid || string(executed.status) != c.executed || !strings.Contains(valid.message+executed.message, c.says) {
			t.Errorf("%s: %+v, %+v; want %s, %s, %q", c.name, valid, executed, c.valid, c.executed, c.says)
		}
	}
}

func TestAnEvictionLeavesWhatCameAfterIt(t *testing.T) {
	at := func(second int) metav1.ObjectMeta {
		return metav1.ObjectMeta{CreationTimestamp: metav1.Unix(int64(second), 0)}
	}
	eviction := &placement.ClusterResourcePlacementEviction{ObjectMeta: at(10)}
	before, same, after := &placement.Work{ObjectMeta: at(9)}, &placement.Work{ObjectMeta: at(10)}, &placement.Work{ObjectMeta: at(11)}
	if got := notAfter(eviction, []*placement.Work{before, same, after}); len(got) != 2 || got[0] != before || got[1] != same {
		t.Errorf("evicted are %v", got)
	}
}

func TestAnEvictedWorkIsNotRetained(t *testing.T) {
	work := &placement.Work{ObjectMeta: metav1.ObjectMeta{
		Name: workName(key, 0), DeletionTimestamp: &metav1.Time{}, Finalizers: []string{placement.FinalizerWork},
		Annotations: map[string]string{placement.AnnotationRetains: "true"},
	}}
	h, desired := &currentWorks{works: []*placement.Work{work}}, desiredWorks{parts: []part{{}}}
	if len(h.retained(key, desired)) != 1 {
		t.Error("a Work that somebody deleted is not retained")
	}
	work.Annotations[placement.AnnotationEvicted] = "u"
	if len(h.retained(key, desired)) != 0 {
		t.Error("a Work that was evicted is retained")
	}
}

func TestADrainMovesOnlyToAMemberThatIsLeftOver(t *testing.T) {
	number := int32(2)
	spec := &placement.PlacementSpec{Policy: &placement.PlacementPolicy{PlacementType: placement.PickN, NumberOfClusters: &number}}
	member := func(name string) *scheduling.Member { return &scheduling.Member{Name: name, Namespace: "of-" + name} }
	out := func(name string) *scheduling.Member {
		m := member(name)
		m.Cordoned, m.Obstacle = true, cordoned(name)
		return m
	}
	works := func(deleting bool, names ...string) map[string]*currentWorks {
		all := map[string]*currentWorks{}
		for _, name := range names {
			all["of-"+name] = &currentWorks{deleting: deleting}
		}
		return all
	}
	one, run := works(false, "b"), *spec
	maps.Copy(one, works(true, "a"))
	run.Strategy.Type = placement.RolloutExternal
	for name, c := range map[string]struct {
		spec    *placement.PlacementSpec
		members []*scheduling.Member
		current map[string]*currentWorks
		says    string
	}{
		"another member takes it":               {spec, []*scheduling.Member{out("b"), member("c"), member("d")}, works(false, "b"), ""},
		"the only other member takes another's": {spec, []*scheduling.Member{out("a"), out("b"), member("c")}, one, "no other member qualifies"},
		"two other members take both":           {spec, []*scheduling.Member{out("a"), out("b"), member("c"), member("d")}, one, ""},
		"the other member is out, too":          {spec, []*scheduling.Member{out("b"), out("c")}, works(false, "b"), "no other member qualifies"},
		"the member is not cordoned any more":   {spec, []*scheduling.Member{member("b"), member("c")}, works(false, "b"), "b is not cordoned"},
		"it picks all members": {
			&placement.PlacementSpec{}, []*scheduling.Member{out("b"), member("c")}, works(false, "b"), "(PickAll)",
		},
		"runs roll it out":   {&run, []*scheduling.Member{out("b"), member("c")}, works(false, "b"), "staged update runs"},
		"there is no member": {spec, nil, nil, "there is no member b"},
	} {
		e := evictor{Controller: &Controller{memory: newMemory(clock.RealClock{})}}
		if got := e.stays(c.spec, c.members, c.current, "b"); (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s: %q, want %q", name, got, c.says)
		}
	}
}
