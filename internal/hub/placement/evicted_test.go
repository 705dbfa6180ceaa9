package placement

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// TestAMemberThatLostTheLastWorkByAnEvictionIsNotTakenForOneThatHasIt has the agent remove the Work
// before the status says that it goes.
func TestAMemberThatLostTheLastWorkByAnEvictionIsNotTakenForOneThatHasIt(t *testing.T) {
	at := func(seconds int) metav1.Time { return metav1.NewTime(now.Add(time.Duration(seconds) * time.Second)) }
	status := placement.PlacementStatus{PlacementStatuses: []placement.PerClusterStatus{{ClusterName: "a", Conditions: []metav1.Condition{
		{Type: placement.ConditionScheduled, Status: metav1.ConditionTrue, LastTransitionTime: at(10)}}}}}
	eviction := func(of, from string, when int, executed ...metav1.ConditionStatus) placement.ClusterResourcePlacementEviction {
		e := placement.ClusterResourcePlacementEviction{Spec: placement.PlacementEvictionSpec{PlacementName: of, ClusterName: from}}
		e.Status.Conditions = []metav1.Condition{{
			Type: placement.ConditionEvictionValid, Status: metav1.ConditionTrue, LastTransitionTime: at(when),
		}}
		for _, status := range executed {
			e.Status.Conditions = append(e.Status.Conditions, metav1.Condition{Type: placement.ConditionEvictionExecuted, Status: status})
		}
		return e
	}
	invalid := eviction("web", "a", 20)
	invalid.Status.Conditions[0].Status = metav1.ConditionFalse
	for name, row := range map[string]struct {
		eviction placement.ClusterResourcePlacementEviction
		evicted  bool
	}{
		"it was evicted":                        {eviction("web", "a", 20, metav1.ConditionTrue), true},
		"in the second in which it was picked":  {eviction("web", "a", 10, metav1.ConditionTrue), true},
		"the eviction has begun":                {eviction("web", "a", 20), true},
		"the budget did not allow it":           {eviction("web", "a", 20, metav1.ConditionFalse), false},
		"it was evicted and picked again since": {eviction("web", "a", 5, metav1.ConditionTrue), false},
		"another placement was evicted":         {eviction("db", "a", 20, metav1.ConditionTrue), false},
		"from another member":                   {eviction("web", "b", 20, metav1.ConditionTrue), false},
		"the eviction is invalid":               {invalid, false},
		"nothing is known of it yet":            {placement.ClusterResourcePlacementEviction{Spec: invalid.Spec}, false},
	} {
		o := world(t, obstacle(0, "Tainted"), func(o *observed) { o.before = status })
		o.evicted = evictedSince("web", &status, []placement.ClusterResourcePlacementEviction{row.eviction})
		if o.evicted["a"] != row.evicted || o.bound()["ns-a"] == row.evicted {
			t.Errorf("%s: evicted %t, bound %v", name, o.evicted["a"], o.bound())
		}
	}
}
