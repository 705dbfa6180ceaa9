package cli

import (
	"context"
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/testkube"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// joined registers a MemberCluster, and reports as its agent that it has joined.
func (r rig) joined(name string, labels map[string]string) {
	r.t.Helper()
	ctx := context.Background()
	r.check(r.Create(ctx, &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: clusterv1beta1.MemberClusterSpec{Identity: rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: name}}}))
	testkube.Eventually(r.t, name+" has joined", func() error {
		report := &clusterv1beta1.InternalMemberCluster{}
		if err := r.Get(ctx, client.ObjectKey{Namespace: "fleet-member-" + name, Name: name}, report); err != nil {
			return err
		}
		now := metav1.Now()
		agent := clusterv1beta1.AgentStatus{Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: now}
		for _, kind := range []string{"Joined", "Healthy"} {
			agent.Conditions = append(agent.Conditions, metav1.Condition{
				Type: kind, Status: metav1.ConditionTrue, Reason: "InternalMemberCluster" + kind, ObservedGeneration: report.Generation,
				LastTransitionTime: now,
			})
		}
		report.Status.AgentStatus = []clusterv1beta1.AgentStatus{agent}
		if err := r.Status().Update(ctx, report); err != nil {
			return err
		}
		mc := &clusterv1beta1.MemberCluster{}
		if err := r.Get(ctx, client.ObjectKey{Name: name}, mc); err != nil || view.State(mc) != view.StateReady {
			return fmt.Errorf("it is %s: %v", view.State(mc), err)
		}
		return nil
	})
}

const approvedFirst = `
stages:
- {name: canary, labelSelector: {}, beforeStageTasks: [{type: Approval}]}`

// staged creates a placement that selects nothing and a run of it, which waits for an approval
// before its only stage.
func (r rig) staged() {
	r.t.Helper()
	ctx := context.Background()
	crp := &placement.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	r.check(yaml.UnmarshalStrict([]byte(`
resourceSelectors: [{group: "", version: v1, kind: Namespace, name: not-there}]
strategy: {type: External}
policy: {placementType: PickFixed, clusterNames: [staged]}`), &crp.Spec))
	strategy := &placement.ClusterStagedUpdateStrategy{ObjectMeta: metav1.ObjectMeta{Name: "canary-first"}}
	r.check(yaml.UnmarshalStrict([]byte(approvedFirst), &strategy.Spec))
	run := &placement.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "shop-v2"}, Spec: placement.UpdateRunSpec{
		PlacementName: "shop", StagedUpdateStrategyName: "canary-first", State: placement.StateRun,
	}}
	for _, o := range []client.Object{crp, strategy, run} {
		r.check(r.Create(ctx, o))
	}
	testkube.Eventually(r.t, "the run waits for an approval", func() error {
		if err := r.Get(ctx, client.ObjectKeyFromObject(run), run); err != nil {
			return err
		}
		if view.State(run) != view.StateAwaitsApproval {
			return fmt.Errorf("it is %s: %s", view.State(run), run.Status.Message)
		}
		return nil
	})
}

func TestAStageOfARunIsApproved(t *testing.T) {
	r := newRig(t)
	ctx := context.Background()
	r.joined("staged", nil)
	r.staged()
	admin := of(t, r.Cluster, r.Account(t, "stage-admin", "cluster-admin"))
	admin.says("get runs", "shop-v2", "ClusterStagedUpdateRun", " AwaitsApproval ", " shop ", " canary ", " 0/1 ",
		"waits for the approval before stage canary")
	admin.says("get approvals", "shop-v2-before-canary", " Pending ", " shop-v2 ", " canary ")
	admin.says("explain runs shop-v2", "ClusterStagedUpdateRun shop-v2 is AwaitsApproval.", "UpdateRunWaiting", "muster approve runs shop-v2")

	r.check(r.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "stage-viewer"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{placement.GroupVersion.Group},
		Resources: []string{"clusterstagedupdateruns", "stagedupdateruns", "clusterapprovalrequests"}, Verbs: []string{"get", "list"},
	}}}))
	viewer := of(t, r.Cluster, r.Account(t, "stage-viewer", "stage-viewer"))
	testkube.Eventually(t, "the viewer sees", func() error { _, _, err := viewer.run("get", "runs", "shop-v2"); return err })
	viewer.refused("approve runs shop-v2", "approving stage canary of run shop-v2", "forbidden")
	viewer.refused("approve shop-v2-before-canary", "approving stage canary of run shop-v2", "forbidden")
	admin.says("get approvals shop-v2-before-canary", " Pending ")

	admin.says("approve shop-v2", "Stage canary of run shop-v2 is approved.")
	admin.says("get approvals", " Approved ")
	admin.refused("approve runs shop-v2", "ClusterStagedUpdateRun shop-v2 does not wait for an approval, its state is ")
	admin.says("approve approvals shop-v2-before-canary", "ClusterApprovalRequest shop-v2-before-canary is already approved.")
	admin.refused("deny runs shop-v2", "muster deny does not support runs")
}
