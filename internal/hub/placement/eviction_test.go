package placement

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
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
