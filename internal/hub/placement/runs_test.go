package placement

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

func TestAStrategyWakesOnlyTheRunsThatWaitForIt(t *testing.T) {
	is := func(kind string, status metav1.ConditionStatus) placement.UpdateRunStatus {
		return placement.UpdateRunStatus{Conditions: []metav1.Condition{{Type: kind, Status: status, Reason: "Because"}}}
	}
	for name, c := range map[string]struct {
		namespace string
		status    placement.UpdateRunStatus
		want      []string
	}{
		"a run that no one has looked at waits":     {"", placement.UpdateRunStatus{}, []string{"/canary-first"}},
		"a run of a namespace waits there":          {"shop", placement.UpdateRunStatus{}, []string{"shop/canary-first"}},
		"a run without the strategy waits":          {"", is(placement.ConditionInitialized, metav1.ConditionFalse), []string{"/canary-first"}},
		"a run that has its stages does not":        {"", is(placement.ConditionInitialized, metav1.ConditionTrue), nil},
		"a run that has failed does not":            {"", is(placement.ConditionSucceeded, metav1.ConditionFalse), nil},
		"a run of a namespace that has ended, also": {"shop", is(placement.ConditionSucceeded, metav1.ConditionTrue), nil},
	} {
		spec := placement.UpdateRunSpec{PlacementName: "web", StagedUpdateStrategyName: "canary-first"}
		meta := metav1.ObjectMeta{Namespace: c.namespace, Name: "run"}
		got := awaitedStrategy(&placement.ClusterStagedUpdateRun{ObjectMeta: meta, Spec: spec, Status: c.status})
		if c.namespace != "" {
			got = awaitedStrategy(&placement.StagedUpdateRun{ObjectMeta: meta, Spec: spec, Status: c.status})
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestVersionsAreLookedForOnlyWhereTheyMayBe(t *testing.T) {
	for name, c := range map[string]struct {
		strategy   placement.RolloutStrategyType
		generation int64
		want       bool
	}{
		"runs have never rolled it out":                     {placement.RolloutRollingUpdate, 2, false},
		"its spec has changed, from what nobody can tell":   {placement.RolloutRollingUpdate, 3, true},
		"runs roll it out":                                  {placement.RolloutExternal, 2, true},
		"runs roll it out since its spec has changed twice": {placement.RolloutExternal, 4, true},
	} {
		crp := &placement.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: c.generation}}
		crp.Spec.Strategy.Type = c.strategy
		if got := mayHaveVersions(ofCRP(crp)); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
