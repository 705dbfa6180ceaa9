package view

import (
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

func TestWhatWaitsForAConfirmation(t *testing.T) {
	const ask = "it would go; kubectl annotate app muster/confirm-removal=0cebe578"
	bundle := func(status corev1.ConditionStatus, reason, message string) *fleet.Bundle {
		return &fleet.Bundle{
			Status: fleet.BundleStatus{
				Conditions: []fleet.Condition{{Type: fleet.ConditionProcessed, Status: status, Reason: reason, Message: message}},
			},
		}
	}
	of := func(kind, reason, message string) placement.PlacementStatus {
		return placement.PlacementStatus{
			Conditions: []metav1.Condition{{Type: kind + "ResourceSelected", Status: metav1.ConditionFalse, Reason: reason, Message: message}},
		}
	}
	deleted := bundle(corev1.ConditionFalse, "RemovalHeld", ask)
	deleted.DeletionTimestamp = &metav1.Time{}
	for name, row := range map[string]struct {
		object client.Object
		value  string
	}{
		"a Bundle": {bundle(corev1.ConditionFalse, "RemovalHeld", ask), "0cebe578"},
		"a ClusterResourcePlacement": {&placement.ClusterResourcePlacement{Status: of("ClusterResourcePlacement", "RemovalUnfounded", ask)},
			"0cebe578"},
		"a ResourcePlacement": {&placement.ResourcePlacement{Status: of("ResourcePlacement", "AuthorMayNotRead", ask)}, "0cebe578"},
		"a quoted value is not the one that is asked for": {
			bundle(corev1.ConditionFalse, "RemovalHeld",
				"c muster/confirm-removal=deadbeef has changed; kubectl annotate app muster/confirm-removal=0cebe578"), "0cebe578"},
		"a quoted value alone":            {bundle(corev1.ConditionFalse, "RemovalHeld", "c muster/confirm-removal=deadbeef has changed"), ""},
		"a message that was cut":          {bundle(corev1.ConditionFalse, "RemovalHeld", ask+"..."), ""},
		"a part of a value":               {bundle(corev1.ConditionFalse, "RemovalHeld", ask[:len(ask)-1]), ""},
		"what tenants wrote as a problem": {bundle(corev1.ConditionFalse, "InvalidForSomeClusters", ask), ""},
		"a Bundle that went on":           {bundle(corev1.ConditionTrue, "RemovalHeld", ask), ""},
		"a Bundle that is being deleted":  {deleted, ""},
		"a new Bundle":                    {&fleet.Bundle{}, ""},
		"an author who may not read enough": {&placement.ResourcePlacement{Status: of("ResourcePlacement", "AuthorMayNotRead", "grant that")},
			""},
		"selectors that are invalid":       {&placement.ResourcePlacement{Status: of("ResourcePlacement", "InvalidResourceSelectors", ask)}, ""},
		"a placement of the other kind":    {&placement.ResourcePlacement{Status: of("ClusterResourcePlacement", "RemovalUnfounded", ask)}, ""},
		"a Cluster":                        {&fleet.Cluster{}, ""},
		"a Bundle that a hub has recorded": {recorded(t, "Bundle", "RemovalHeld", &fleet.Bundle{}), "335f9122"},
		"a placement that a hub has recorded": {
			recorded(t, "ClusterResourcePlacement", "RemovalUnfounded", &placement.ClusterResourcePlacement{}), "0cebe578"},
	} {
		message, value := HeldRemoval(row.object)
		if value != row.value || (message == "") != (value == "") {
			t.Errorf("%s: %q is confirmed by %q, not by %q", name, message, value, row.value)
		}
	}
	if fleet.AnnotationConfirmRemoval != placement.AnnotationConfirmRemoval {
		t.Error("Bundles and placements are not confirmed alike")
	}
}

// recorded reads an object in which a hub gave a reason.
func recorded[T client.Object](t *testing.T, kind, reason string, into T) T {
	t.Helper()
	text, err := os.ReadFile("../explain/testdata/" + kind + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]any{}
	if err := yaml.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	one, err := yaml.Marshal(all[reason])
	if err == nil {
		err = yaml.UnmarshalStrict(one, into)
	}
	if err != nil {
		t.Fatal(err)
	}
	return into
}
