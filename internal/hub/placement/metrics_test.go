package placement

import (
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
)

func TestPlacementsAreCountedByHowTheyStand(t *testing.T) {
	crp := func(name string, conditions ...string) client.Object {
		made := &placement.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, c := range conditions {
			kind, status, _ := strings.Cut(c, "=")
			status, reason, _ := strings.Cut(status, ":")
			meta.SetStatusCondition(&made.Status.Conditions, metav1.Condition{
				Type: "ClusterResourcePlacement" + kind, Status: metav1.ConditionStatus(status), Reason: reason,
			})
		}
		return made
	}
	going := crp("going")
	going.SetDeletionTimestamp(&metav1.Time{Time: now})
	going.SetFinalizers([]string{"f"})
	behind := crp("behind", "Scheduled=True", "RolloutStarted=False:"+reasons.RolloutNotStartedYet).(*placement.ClusterResourcePlacement)
	behind.Status.PlacementStatuses = []placement.PerClusterStatus{
		{ClusterName: "a", Conditions: []metav1.Condition{{Type: "Scheduled", Status: "True"}, {Type: "Applied", Status: "False"}}},
		{
			ClusterName: "b", Conditions: []metav1.Condition{
				{Type: "Scheduled", Status: "True"}, {Type: "RolloutStarted", Status: "False", Reason: reasons.RolloutNotStartedYet},
			},
		},
	}
	scheme := runtime.NewScheme()
	if err := placement.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := New(Deps{Deps: controller.Deps{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(going, behind, crp("new"),
		crp("unscheduled", "Scheduled=False"),
		crp("failing", "Scheduled=True", "RolloutStarted=True", "Applied=False"),
		crp("waiting", "Scheduled=True", "RolloutStarted=False:"+reasons.RolloutNotStartedYet, "Applied=True"),
		crp("fine", "Scheduled=True", "Applied=True", "Available=True"), crp("compared", "Scheduled=True", "DiffReported=True"),
		&placement.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "new"}}).Build()}})
	want := `
# HELP muster_hub_placements Placements by their state on the picked members.
# TYPE muster_hub_placements gauge
muster_hub_placements{kind="ClusterResourcePlacement",state="Available"} 2
muster_hub_placements{kind="ClusterResourcePlacement",state="Failing"} 2
muster_hub_placements{kind="ClusterResourcePlacement",state="Pending"} 2
muster_hub_placements{kind="ClusterResourcePlacement",state="Removing"} 1
muster_hub_placements{kind="ClusterResourcePlacement",state="Unscheduled"} 1
muster_hub_placements{kind="ResourcePlacement",state="Available"} 0
muster_hub_placements{kind="ResourcePlacement",state="Failing"} 0
muster_hub_placements{kind="ResourcePlacement",state="Pending"} 1
muster_hub_placements{kind="ResourcePlacement",state="Removing"} 0
muster_hub_placements{kind="ResourcePlacement",state="Unscheduled"} 0
`
	if err := testutil.CollectAndCompare(c, strings.NewReader(want), "muster_hub_placements"); err != nil {
		t.Error(err)
	}
	c.countResults(rolloutPlan{write: []target{{namespace: "a"}, {namespace: "b"}}, remove: []target{{namespace: "c"}}},
		failures{"b": errors.New("no")})
	if err := testutil.CollectAndCompare(c, strings.NewReader(`
# HELP muster_hub_placement_members_total Writes of placements to members, by result: written, removed or failed.
# TYPE muster_hub_placement_members_total counter
muster_hub_placement_members_total{result="failed"} 1
muster_hub_placement_members_total{result="removed"} 1
muster_hub_placement_members_total{result="written"} 1
`), "muster_hub_placement_members_total"); err != nil {
		t.Error(err)
	}
}
