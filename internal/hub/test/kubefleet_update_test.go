package hub_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// stages lists conditions as TYPE=STATUS, without the name of the kind.
func stages(conditions []metav1.Condition) string {
	var all []string
	for _, c := range conditions {
		all = append(all, fmt.Sprintf("%s=%s", strings.TrimPrefix(strings.TrimPrefix(c.Type, "Cluster"), "ResourcePlacement"), c.Status))
	}
	slices.SortStableFunc(all, func(a, b string) int { return rank(a) - rank(b) })
	return strings.Join(all, " ")
}

func rank(stage string) int {
	kind, _, _ := strings.Cut(stage, "=")
	return slices.Index([]string{"Scheduled", "RolloutStarted", "Overridden", "WorkSynchronized", "Applied", "Available", "DiffReported"},
		kind)
}

const writtenStages = "Scheduled=True RolloutStarted=True Overridden=True WorkSynchronized=True"

// pickedOf are the members that a status lists as picked.
func pickedOf(status placement.PlacementStatus) []placement.PerClusterStatus {
	return slices.DeleteFunc(slices.Clone(status.PlacementStatuses), func(s placement.PerClusterStatus) bool {
		return !meta.IsStatusConditionTrue(s.Conditions, placement.ConditionScheduled)
	})
}

// untilStages waits until a placement and each of its members has these conditions of the present
// generation and no others.
func (f fixture) untilStages(crp *placement.ClusterResourcePlacement, want string, members ...string) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("conditions are %s on %v", want, members), func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(crp), crp); err != nil {
			return err
		}
		got := map[string]string{"": stages(crp.Status.Conditions)}
		wanted := map[string]string{"": want}
		for _, s := range pickedOf(crp.Status) {
			got[s.ClusterName] = stages(s.Conditions)
			for _, c := range s.Conditions {
				if c.ObservedGeneration != crp.Generation {
					return fmt.Errorf("%s of %s is of generation %d, want %d", c.Type, s.ClusterName, c.ObservedGeneration, crp.Generation)
				}
			}
		}
		for _, m := range members {
			wanted[m] = want
		}
		if diff := cmp.Diff(wanted, got); diff != "" {
			return errors.New(diff + crp.Status.Message)
		}
		return nil
	})
}

func TestThereIsNoConditionAvailableWhileKubeFleetsAgentHasNotApplied(t *testing.T) {
	f := newFixture(t)
	k := f.kubefleet("unapplied")
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", f.shop()))
	work := k.receives("placed", func(*placement.Work) bool { return true })
	f.untilStages(crp, writtenStages+" Applied=Unknown", k.name)
	if want := k.name + ": waiting for the member's agent to apply it"; crp.Status.Message != want {
		t.Errorf("it says %q, want %q", crp.Status.Message, want)
	}
	k.addsFinalizer(work)
	k.failing = "settings"
	k.applies(work)
	f.untilStages(crp, writtenStages+" Applied=False", k.name)
	k.failing = ""
	k.applies(work)
	f.untilStages(crp, writtenStages+" Applied=True Available=True", k.name)

	f.change(crp, func() {
		crp.Spec.Strategy.ApplyStrategy = &placement.ApplyStrategy{Type: placement.ApplyReportDiff}
	})
	k.receives("only to be compared", func(w *placement.Work) bool { return w.Generation > work.Generation })
	f.untilStages(crp, writtenStages+" DiffReported=Unknown", k.name)
}

// TestANamespaceIsPlacedAsEveryAPIServerFillsIt proves that an agent which compares whole objects
// finds nothing that the manifest lacks.
func TestANamespaceIsPlacedAsEveryAPIServerFillsIt(t *testing.T) {
	f := newFixture(t)
	k := f.kubefleet("filled")
	shop := f.shop()
	f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	work := k.receives("placed", func(*placement.Work) bool { return true })
	there := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop}}
	f.check(k.on.Create(context.Background(), there))
	manifest := &corev1.Namespace{}
	for _, m := range work.Spec.Workload.Manifests {
		o := &unstructured.Unstructured{}
		f.check(json.Unmarshal(m.Raw, &o.Object))
		if o.GetKind() == "Namespace" {
			f.check(json.Unmarshal(m.Raw, manifest))
		}
	}
	if diff := cmp.Diff(there.Spec, manifest.Spec) + cmp.Diff(there.Labels, manifest.Labels); diff != "" {
		t.Errorf("a full comparison finds (-member +manifest):\n%s", diff)
	}
}
