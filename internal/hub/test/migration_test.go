package hub_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// actsFor waits until the hub takes the agent of a Cluster for one of a kind, and it is well.
func (f fixture) actsFor(name, kind string) fleet.Cluster {
	f.t.Helper()
	f.eventually(kind+" agent of "+name, func() error {
		var account corev1.ServiceAccount
		if err := f.get(&account, naming.MemberNamespace(f.workspace, name), naming.MemberServiceAccount); err != nil {
			return err
		}
		acting := account.Annotations["muster/agent"]
		if shared := account.Annotations["muster/acting-agent"]; shared != "" {
			acting = shared
		}
		if acting != kind {
			return fmt.Errorf("its account says %v", account.Annotations)
		}
		return f.reason(name, "Ready")
	})
	var cluster fleet.Cluster
	f.check(f.get(&cluster, f.workspace, name))
	return cluster
}

// dropped waits until nothing is left of what an agent of Muster said of a Cluster.
func (f fixture) dropped(name string) {
	f.t.Helper()
	f.eventually("the report is dropped", func() error {
		var report clusterv1beta1.InternalMemberCluster
		if err := f.get(&report, naming.MemberNamespace(f.workspace, name), name); err != nil {
			return err
		}
		if !equality.Semantic.DeepEqual(report.Status, clusterv1beta1.InternalMemberClusterStatus{}) {
			return fmt.Errorf("it says %+v", report.Status)
		}
		var cluster fleet.Cluster
		if err := f.get(&cluster, f.workspace, name); err != nil {
			return err
		}
		if cluster.Status.Display.ReadyNodes != "" || kube.FindCondition(cluster.Status.Conditions, fleet.ConditionHubConfigured) != nil {
			return fmt.Errorf("the Cluster says %+v", cluster.Status)
		}
		return nil
	})
}

// onlyGoodReasons checks that a Cluster was never anything but well, waiting for a beat, about to
// be given a Bundle, or between two identities.
func (f fixture) onlyGoodReasons(reasons []string) {
	f.t.Helper()
	for _, reason := range reasons {
		if reason != "Ready" && reason != "WaitCheckIn" && reason != "WaitApplied" && reason != "IdentityMissing" {
			f.t.Errorf("meanwhile it was %s", reason)
		}
	}
}

// TestAClusterMigratesFromRancherFleetAndBackByOneUpgradeEach goes there with the values that Helm
// reuses, and back by helm rollback, with nothing but the credential that the hub gave to the
// agent of Rancher Fleet.
func TestAClusterMigratesFromRancherFleetAndBackByOneUpgradeEach(t *testing.T) {
	f := newFixture(t)
	d := f.downstream()
	_, token := f.token("new-token", "")
	d.install(d.theirs(), d.values(token, "migrates"))
	name := naming.Cluster("migrates")
	theirs := d.startTheirs()
	f.check(theirs.beat(time.Now()))
	uid := f.actsFor(name, "legacy").UID
	credential, _ := d.credential()
	reasons := f.reasons(name)

	d.upgrade(d.ours(), nil)
	var bootstrap corev1.Secret
	f.check(d.get(&bootstrap, d.agentNamespace, naming.AgentBootstrapSecret))
	if len(bootstrap.Data["configDigest"]) == 0 {
		t.Error("the bootstrap Secret is still that of the other chart")
	}
	definition := kube.Metadata(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	f.check(d.get(definition, "", "appliedworks.placement.kubernetes-fleet.io"))
	var deployment appsv1.Deployment
	f.check(d.get(&deployment, d.agentNamespace, "fleet-agent"))
	if c := deployment.Spec.Template.Spec.Containers[0]; c.Image != "muster-agent:0.1.0" || len(c.Command) != 0 || c.Resources.Limits == nil {
		t.Errorf("it runs %s with %v, limits %v", c.Image, c.Command, c.Resources.Limits)
	}
	d.start()
	cluster := f.actsFor(name, "native")
	f.says(name, "SharedCredential", "may take over again at any time")
	if after, _ := d.credential(); cluster.UID != uid || after != credential || len(f.clusters()) != 1 {
		t.Errorf("there are %d Clusters, the same credential: %t", len(f.clusters()), after == credential)
	}
	f.eventually("the token that it has not needed is forgotten", func() error {
		return gone(d.get(&corev1.Secret{}, d.agentNamespace, naming.AgentBootstrapSecret))
	})
	var report clusterv1beta1.InternalMemberCluster
	f.check(f.get(&report, naming.MemberNamespace(f.workspace, name), name))

	d.rollback(1)
	theirs = d.startTheirs()
	if theirs.registered {
		t.Error("it registered again")
	}
	d.stop()
	f.check(theirs.beat(time.Now()))
	cluster = f.actsFor(name, "legacy")
	f.says(name, "ForeignAgent")
	f.dropped(name)
	var role rbacv1.ClusterRole
	f.check(d.Get(context.Background(), types.NamespacedName{Name: "fleet-agent-system-fleet-agent-role"}, &role))
	if cluster.UID != uid || !slices.Equal(role.Rules[0].Verbs, []string{"*"}) {
		t.Errorf("it is Cluster %s, and its agent may %v", cluster.UID, role.Rules)
	}
	f.check(theirs.beat(time.Now().Add(time.Second)))

	d.upgrade(d.ours(), nil)
	d.start()
	if cluster = f.actsFor(name, "native"); cluster.UID != uid {
		t.Error("it is another Cluster")
	}
	var again clusterv1beta1.InternalMemberCluster
	f.eventually("it reports under the same report", func() error {
		if err := f.get(&again, naming.MemberNamespace(f.workspace, name), name); err != nil {
			return err
		}
		if again.Status.AgentVersion == "" || again.UID != report.UID {
			return fmt.Errorf("report %s, before %s: %+v", again.UID, report.UID, again.Status)
		}
		return nil
	})
	f.onlyGoodReasons(reasons())
	if history, err := d.configuration.Releases.History("fleet-agent"); err != nil || len(history) != 4 {
		t.Errorf("the release has %d revisions: %v", len(history), err)
	}
}

// TestAnAgentOfRancherFleetRegistersAgainAsTheSameClusterAfterOneWithACredentialOfItsOwn changes to
// Muster's agent with the values of a new token, and back with the values of another. The replaced
// agent still runs then.
func TestAnAgentOfRancherFleetRegistersAgainAsTheSameClusterAfterOneWithACredentialOfItsOwn(t *testing.T) {
	f := newFixture(t)
	d := f.downstream()
	_, token := f.token("new-token", "")
	d.install(d.theirs(), d.values(token, "commits"))
	name := naming.Cluster("commits")
	theirs := d.startTheirs()
	f.check(theirs.beat(time.Now()))
	uid := f.actsFor(name, "legacy").UID
	reasons := f.reasons(name)

	time.Sleep(1100 * time.Millisecond) // a token says in seconds when it was issued
	_, fresh := f.token("fresh-token", "240h")
	d.upgrade(d.ours(), d.values(fresh, "commits"))
	d.options = append(d.options, canReplaceItself)
	d.start()
	f.actsFor(name, "native")
	m := managed{&member{fixture: f}, name}
	ready(t, f.Client, m.sent(""))
	f.says(name, "UpToDate")

	back := f.stampingToken("token-back", fleet.ClusterRegistrationTokenSpec{ClusterName: name})
	d.upgrade(d.theirs(), d.values(back, "commits"))
	theirs = d.startTheirs()
	if !theirs.registered {
		t.Error("it goes on with a credential that ends, which it does not know")
	}
	f.check(theirs.beat(time.Now()))
	cluster := f.actsFor(name, "legacy")
	f.says(name, "ForeignAgent")
	f.dropped(name)
	if err := gone(f.get(&fleet.Bundle{}, f.workspace, m.bundleName())); err != nil {
		t.Error(err)
	}
	if cluster.UID != uid || len(f.clusters()) != 1 {
		t.Errorf("there are %d Clusters", len(f.clusters()))
	}
	f.eventually("the agent before knows that it is displaced", func() error {
		if state, reason, ready := d.agent.Status(); ready || state != "Waiting" {
			return fmt.Errorf("it is %s: %s", state, reason)
		}
		return nil
	})
	f.check(theirs.beat(time.Now().Add(time.Second)))
	d.stop()
	if _, err := d.stored(); err != nil {
		t.Errorf("the credential of the agent that registered is not there: %v", err)
	}
	f.onlyGoodReasons(reasons())
	if history, err := d.configuration.Releases.History("fleet-agent"); err != nil || len(history) != 3 {
		t.Errorf("the release has %d revisions: %v", len(history), err)
	}
}

// TestOnlyTheHolderOfACredentialTakesAClusterOver takes over through the status of the Cluster,
// with the UID of the account.
func TestOnlyTheHolderOfACredentialTakesAClusterOver(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	a, b := f.legacyJoin(values, "holder"), f.legacyJoin(values, "other")
	f.check(a.beat(time.Now()))
	name := naming.Cluster("holder")
	f.actsFor(name, "legacy")
	var account corev1.ServiceAccount
	f.check(f.get(&account, naming.MemberNamespace(f.workspace, name), naming.MemberServiceAccount))
	claim := func(as client.Client, uid types.UID) error {
		patch := fmt.Sprintf(`{"status":{"agent":{"account":%q}}}`, uid)
		cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: name}}
		return as.Status().Patch(context.Background(), cluster, client.RawPatch(types.MergePatchType, []byte(patch)))
	}
	f.refused("the holder of a registration token takes a Cluster over", claim(f.as(values["token"]), account.UID))
	f.refused("another member takes a Cluster over", claim(b.Client, account.UID))

	f.check(claim(a.Client, "6f7c6d1e-7f3b-4a53-9d3e-0a1b2c3d4e5f"))
	f.check(a.beat(time.Now().Add(time.Second)))
	f.refused("the account of the legacy agent reads a report",
		a.Client.List(context.Background(), &clusterv1beta1.InternalMemberClusterList{}, client.InNamespace(account.Namespace)))
	f.actsFor(name, "legacy")
	f.check(claim(a.Client, account.UID))
	f.actsFor(name, "native")
}
