package ownbundle

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

func TestTheFirstProblemIsShown(t *testing.T) {
	const source = "Polled"
	now := time.Unix(1000, 0)
	for name, row := range map[string]struct {
		condition string
		failed    map[string]bool
	}{
		"a refused spec":           {ConditionAccepted, map[string]bool{fleet.ConditionReady: true, ConditionAccepted: true}},
		"a source that is away":    {source, map[string]bool{fleet.ConditionReady: true, source: true}},
		"Bundles that are refused": {fleet.ConditionReady, map[string]bool{fleet.ConditionReady: true}},
		"none":                     {"", map[string]bool{}},
	} {
		var turn Turn
		if row.condition != "" {
			turn.Fail(row.condition, "First", "%s of two", "one")
			turn.Fail(source, "Second", "ignored")
		}
		before := []fleet.Condition{kube.Condition(fleet.ConditionSupported, false, "KindNotImplemented", "")}
		conditions := turn.Conditions(before, kube.Condition(fleet.ConditionReady, true, "Ready", ""),
			kube.Condition(source, true, source, ""), now)
		if len(conditions) != 3 {
			t.Errorf("%s: the conditions are %+v", name, conditions)
		}
		for _, c := range conditions {
			isFirst := c.Reason == "First" && c.Message == "one of two"
			if (c.Status == corev1.ConditionFalse) != row.failed[c.Type] || row.failed[c.Type] != isFirst {
				t.Errorf("%s: condition %+v", name, c)
			}
		}
		shown := turn.Display(fleet.BundleSummary{DesiredReady: 2, Ready: 1}, conditions)
		if shown.ReadyBundleDeployments != "1/2" || shown.Error != (row.condition != "") || (shown.Message == "") != (row.condition == "") {
			t.Errorf("%s: the columns are %+v", name, shown)
		}
	}
}

func TestHowLongAMissingGrantIsAwaited(t *testing.T) {
	var turn Turn
	if turn.AwaitsGrant(0) {
		t.Error("a grant is awaited without a problem")
	}
	turn.Fail(ConditionAccepted, "Forbidden", "no right")
	if turn.AwaitsGrant(0) {
		t.Error("a grant is awaited for another problem")
	}
	turn.Problem.Again = GrantAgain
	if !turn.AwaitsGrant(grantedWithin-1) || turn.AwaitsGrant(grantedWithin) {
		t.Error("a grant is not awaited for exactly the time it may take")
	}
}
