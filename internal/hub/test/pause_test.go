package hub_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// pause sets the mark of a member or a placement, or removes it.
func (f fixture) pause(o client.Object, value string) {
	f.t.Helper()
	f.patch(o, `{"metadata":{"annotations":{"`+fleet.AnnotationPaused+`":`+value+`}}}`)
}

// TestWhatIsPausedKeepsWhatItHasAndGetsNothingNew pauses a MemberCluster, then its placement.
func TestWhatIsPausedKeepsWhatItHasAndGetsNothingNew(t *testing.T) {
	f := newFixture(t)
	m, other := f.joined("paused"), f.joined("busy")
	shop := f.shop()
	crp := f.crp(`
resourceSelectors: [{group: "", version: v1, kind: Namespace, name: ` + shop + `}]
policy:
  affinity:
    clusterAffinity:
      requiredDuringSchedulingIgnoredDuringExecution: {clusterSelectorTerms: [{labelSelector: {matchLabels: {test: $TEST}}}]}`)
	f.untilOn(crp, m, other)
	f.check(f.Get(context.Background(), client.ObjectKeyFromObject(crp), crp))
	m.apply(crp.Name+"-work", "")
	other.apply(crp.Name+"-work", "")
	f.untilSays(crp, "Available", metav1.ConditionTrue, "")
	index := func(of *registered) string {
		for _, w := range f.works(crp) {
			if w.Namespace == of.namespaceName() {
				return w.Labels[placement.LabelResourceIndex]
			}
		}
		return "none"
	}
	has := func(of *registered, want string) {
		t.Helper()
		f.eventually("the Work has version "+want, func() error {
			if got := index(of); got != want {
				return fmt.Errorf("it has %s", got)
			}
			return nil
		})
	}
	change := func(value string) {
		f.patch(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "settings"}}, `{"data":{"a":"`+value+`"}}`)
	}
	record := m.record()
	f.pause(&record, `"true"`)
	f.untilSays(crp, "RolloutStarted", metav1.ConditionTrue, "")
	first := index(m)
	change("2")
	f.untilSays(crp, "RolloutStarted", metav1.ConditionFalse, "the member is paused; placed objects stay as they are")
	second := "1"
	has(other, second)
	if got := index(m); got != first {
		t.Errorf("a paused member gets version %s", got)
	}
	other.apply(crp.Name+"-work", "") // of two members, one may be unavailable at a time
	f.pause(&record, "null")
	has(m, second)
	m.apply(crp.Name+"-work", "")

	f.pause(crp, `"true"`)
	f.untilSays(crp, "Scheduled", metav1.ConditionFalse,
		"the placement is paused, and nothing changes: muster pause placements/"+crp.Name+" --undo")
	change("3")
	f.pause(crp, "null")
	has(other, "2")
}
