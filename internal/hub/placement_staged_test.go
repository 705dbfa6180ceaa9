package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

func TestStagedUpdateRunsSayThatTheyAreNotExecuted(t *testing.T) {
	f := newFixture(t)
	spec := placement.UpdateRunSpec{PlacementName: "web", StagedUpdateStrategyName: "canary-first"}
	clusterwide := &placement.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{GenerateName: "run-"}, Spec: spec}
	namespaced := &placement.StagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "run"}, Spec: spec}
	for run, status := range map[client.Object]*placement.UpdateRunStatus{clusterwide: &clusterwide.Status, namespaced: &namespaced.Status} {
		f.check(f.Create(context.Background(), run))
		t.Cleanup(func() { _ = f.Delete(context.Background(), run) })
		f.eventually("the condition says so", func() error {
			f.check(f.Get(context.Background(), client.ObjectKeyFromObject(run), run))
			c := meta.FindStatusCondition(status.Conditions, placement.ConditionSupported)
			if c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "make a placement for each stage") {
				return fmt.Errorf("it says %+v", status.Conditions)
			}
			return nil
		})
	}
	for _, list := range []client.ObjectList{
		&placement.ClusterStagedUpdateStrategyList{}, &placement.StagedUpdateStrategyList{}, &placement.ClusterApprovalRequestList{}, &placement.ApprovalRequestList{},
	} {
		f.check(f.List(context.Background(), list)) // they are served
	}
}
