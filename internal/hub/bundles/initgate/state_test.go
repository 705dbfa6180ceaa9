package initgate

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

func TestGatesOpenInTheirOrder(t *testing.T) {
	network, storage := fleet.InitGate{Bundle: "network"}, fleet.InitGate{Bundle: "storage"}
	audited := fleet.InitGate{Condition: "example.com/Audited"}
	ready := func(name string) *fleet.BundleDeployment {
		d := &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Name: name}}
		d.Spec.DeploymentID, d.Spec.StagedDeploymentID = "s-1:a", "s-1:a"
		d.Status.AppliedDeploymentID, d.Status.Ready, d.Status.NonModified = "s-1:a", true, true
		return d
	}
	held := func(name string) *fleet.BundleDeployment {
		d := ready(name)
		d.Spec.StagedDeploymentID, d.Spec.Paused = "s-2:b", true
		return d
	}
	said := func(status corev1.ConditionStatus) []fleet.Condition {
		return []fleet.Condition{{Type: "example.com/Audited", Status: status, Reason: "Auditor", Message: "2 findings"}}
	}
	once := metav1.NewTime(time.Unix(1, 0))
	for name, test := range map[string]struct {
		gates       []fleet.InitGate
		at          *fleet.ClusterInitialization
		conditions  []fleet.Condition
		deployments []*fleet.BundleDeployment
		want        decision
	}{
		"no gates": {want: decision{}},
		"no deployment": {gates: []fleet.InitGate{network, audited}, conditions: said("True"), want: decision{
			waits: "init gate 1 of 2 waits for Bundle network: it has no deployment on this Cluster: create it in workspace clusters, and let one " +
				"of its targets match"}},
		"a paused Bundle": {gates: []fleet.InitGate{network}, deployments: []*fleet.BundleDeployment{held("network")}, want: decision{
			waits: "init gate 1 of 1 waits for Bundle network: it is Paused: paused"}},
		"the condition is missing": {gates: []fleet.InitGate{network, audited}, deployments: []*fleet.BundleDeployment{ready("network")},
			want: decision{opened: 1, waits: "init gate 2 of 2 waits for condition example.com/Audited: the Cluster does not have it yet"}},
		"the condition is False": {gates: []fleet.InitGate{audited, network}, conditions: said("False"),
			deployments: []*fleet.BundleDeployment{ready("network")},
			want:        decision{waits: "init gate 1 of 2 waits for condition example.com/Audited: it is False: 2 findings"}},
		"the second Bundle is ready, the first is not": {gates: []fleet.InitGate{network, storage},
			deployments: []*fleet.BundleDeployment{ready("storage")}, want: decision{
				waits: "init gate 1 of 2 waits for Bundle network: it has no deployment on this Cluster: create it in workspace clusters, and let " +
					"one of its targets match"}},
		"all": {gates: []fleet.InitGate{network, audited}, conditions: said("True"),
			deployments: []*fleet.BundleDeployment{ready("network")}, want: decision{opened: 2, finished: true}},
		"finished, and the Bundle is gone": {gates: []fleet.InitGate{network}, at: &fleet.ClusterInitialization{Opened: 1, Finished: &once},
			want: decision{opened: 1, finished: true}},
		"finished, and the gates are gone": {at: &fleet.ClusterInitialization{Opened: 1, Finished: &once},
			want: decision{opened: 1, finished: true}},
		"the gates were removed before that": {at: &fleet.ClusterInitialization{Opened: 1}, want: decision{}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "c"}}
			cluster.Spec.InitGates, cluster.Status.Initialization, cluster.Status.Conditions = test.gates, test.at, test.conditions
			deployments := map[string]*fleet.BundleDeployment{}
			for _, d := range test.deployments {
				deployments[d.Name] = d
			}
			got := decide(cluster, deployments)
			if got != test.want {
				t.Fatalf("got %+v\nwant %+v", got, test.want)
			}
			now := time.Unix(100, 0)
			describe(&cluster.Status, got, now)
			condition := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionInitialized)
			switch at := cluster.Status.Initialization; {
			case got == decision{}:
				if at != nil || condition != nil {
					t.Errorf("the status shows %+v, %+v", at, condition)
				}
			case condition.Status == corev1.ConditionTrue != got.finished, condition.Message != got.waits, at.Finished != nil != got.finished:
				t.Errorf("the status shows %+v, %+v", at, condition)
			case got.finished && test.at != nil && !at.Finished.Equal(&once):
				t.Errorf("it finished again at %s", at.Finished)
			}
		})
	}
}
