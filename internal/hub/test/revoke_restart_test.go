package hub_test

import (
	"context"
	"fmt"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	muster "github.com/muster-fleet/muster/api/muster/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// revocations returns the entries of the audit about revocations of a Cluster.
func (f fixture) revocations(cluster string) []muster.AuditEntrySpec {
	f.t.Helper()
	var list muster.AuditEntryList
	f.check(f.List(context.Background(), &list, client.InNamespace(f.workspace), client.MatchingFields{"spec.object.name": cluster}))
	var found []muster.AuditEntrySpec
	for _, e := range list.Items {
		if e.Spec.Reason == muster.AuditRevoked {
			found = append(found, e.Spec)
		}
	}
	return found
}

// epochOf returns what a Cluster says of how often it was revoked.
func (f fixture) epochOf(cluster string) string {
	f.t.Helper()
	var record fleet.Cluster
	f.check(f.get(&record, f.workspace, cluster))
	return record.Annotations[clusterv1beta1.AnnotationMemberEpoch]
}

// TestARevocationIsFinishedHoweverOftenTheHubIsKilled keeps the hub by admission policies from
// one step of a revocation, kills it there, and takes the revocation back before it is
// finished: the access of before ends all the same, once. It takes minutes: a hub is killed and
// started at each step.
func TestARevocationIsFinishedHoweverOftenTheHubIsKilled(t *testing.T) {
	f := newAlone(t, "")
	ctx := context.Background()
	_, values := f.token("new-token", "")
	m := f.join(values, map[string]any{"clientID": "killed"})
	name := naming.Cluster("killed")
	f.untilReady(name, "Ready")
	bearer, former := m.credential()
	m.stop()
	probe := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: former, Name: "probe"}, RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view",
		},
	}
	f.check(f.Create(ctx, probe))
	epoch := fmt.Sprintf("object.metadata.?annotations[?'%[1]s'] == oldObject.metadata.?annotations[?'%[1]s']",
		clusterv1beta1.AnnotationMemberEpoch)
	permitEpoch := f.forbid(admissionv1.Update, fleet.GroupVersion.Group, "clusters", epoch, func() error {
		return merge(f.asHub(), f.clusterRecord(name), fmt.Sprintf(`{"metadata":{"annotations":{%q:"9"}}}`, clusterv1beta1.AnnotationMemberEpoch),
			client.DryRunAll)
	}, f.workspace)
	permitDeletion := f.forbid(admissionv1.Delete, rbacv1.GroupName, "rolebindings", "false",
		func() error { return f.Delete(ctx, probe, client.DryRunAll) }, former)

	f.check(revoke(f.Client, f.clusterRecord(name), `"true"`))
	for range 2 {
		f.eventually("the revocation stands in the audit", func() error {
			if found := f.revocations(name); len(found) != 1 {
				return fmt.Errorf("there are %v", found)
			}
			return nil
		})
		f.restartHub()
	}
	if epoch := f.epochOf(name); epoch != "" {
		t.Fatalf("the epoch is %s: the test proves nothing", epoch)
	}
	permitEpoch()
	for range 2 {
		f.eventually("another epoch has begun", func() error {
			if epoch := f.epochOf(name); epoch != "1" {
				return fmt.Errorf("it is %q", epoch)
			}
			return nil
		})
		f.restartHub()
	}
	var namespace corev1.Namespace
	if f.check(f.get(&namespace, "", former)); namespace.DeletionTimestamp != nil {
		t.Fatal("the namespace of before is being deleted: the test proves nothing")
	}
	f.check(revoke(f.Client, f.clusterRecord(name), "null"))
	f.restartHub()
	permitDeletion()
	f.eventually("the namespace of before is gone", func() error { return gone(f.get(&corev1.Namespace{}, "", former)) })
	f.untilReady(name, "IdentityMissing")
	f.refused("the agent of before lists", f.as(bearer).List(ctx, &fleet.BundleDeploymentList{}, client.InNamespace(former)))
	m.bootstrap(values)
	m.start()
	f.untilReady(name, "Ready")
	f.eventually("the agent has stored that its namespace is another one", func() error { // after its first beat
		if is := string(m.stored().Data["deploymentNamespace"]); is != naming.LongMemberNamespaceAt(1, f.workspace, name) {
			return fmt.Errorf("it is %s", is)
		}
		return nil
	})
	if found := f.revocations(name); len(found) != 1 || f.epochOf(name) != "1" {
		t.Errorf("after all that the epoch is %s, and the audit says %v", f.epochOf(name), found)
	}
}

// TestARevokedImportIsLeftAloneUntilThatIsTakenBack revokes a Cluster that the hub imports, and
// changes what would have the hub connect to the cluster again.
func TestARevokedImportIsLeftAloneUntilThatIsTakenBack(t *testing.T) {
	i := newAlone(t, "").importing(nil)
	ctx := context.Background()
	i.begin()
	i.imported("my-cluster", "Imported")
	i.runAgent()
	former := i.untilReady("my-cluster", "Ready").Status.Namespace
	var stored corev1.Secret
	i.check(i.remoteGet(&stored, naming.AgentSecret))
	as := i.as(string(stored.Data["token"]))
	i.check(as.List(ctx, &fleet.BundleDeploymentList{}, client.InNamespace(former)))

	i.check(revoke(i.Client, i.clusterRecord("my-cluster"), `"true"`))
	i.untilRevoked("my-cluster")
	i.eventually("the namespace is gone", func() error { return gone(i.get(&corev1.Namespace{}, "", former)) })
	i.refused("the agent lists", as.List(ctx, &fleet.BundleDeploymentList{}, client.InNamespace(former)))
	visits := i.visits.Load()
	i.check(merge(i, i.clusterRecord("my-cluster"), `{"spec":{"redeployAgentGeneration":7}}`))
	i.check(merge(i, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: i.workspace, Name: "my-cluster-kubeconfig"}},
		`{"metadata":{"labels":{"touched":"true"}}}`))
	i.restartHub()
	i.record("later", "missing")
	i.imported("later", "SecretMissing") // so the restarted hub has reconciled all Clusters that were there before
	i.untilRevoked("my-cluster")
	if now := i.visits.Load(); now != visits {
		t.Errorf("the hub sent %d requests to the cluster of a revoked record", now-visits)
	}

	i.check(revoke(i.Client, i.clusterRecord("my-cluster"), "null"))
	if back := i.untilReady("my-cluster", "Ready"); back.Status.Namespace != naming.LongMemberNamespaceAt(1, i.workspace, "my-cluster") {
		t.Errorf("it has namespace %s", back.Status.Namespace)
	}
	i.eventually("the import is done, which the agent may have been faster to use than the hub to say", func() error {
		var cluster fleet.Cluster
		if err := i.get(&cluster, i.workspace, "my-cluster"); err != nil {
			return err
		}
		status := cluster.Status
		if imported := kube.FindCondition(status.Conditions, fleet.ConditionImported); imported == nil ||
			imported.Status != corev1.ConditionTrue || *status.AgentDeployedGeneration != 7 {
			return fmt.Errorf("generation %d, import %+v", *status.AgentDeployedGeneration, imported)
		}
		return nil
	})
	if i.visits.Load() == visits {
		t.Error("the hub has not connected to the cluster again")
	}
}
