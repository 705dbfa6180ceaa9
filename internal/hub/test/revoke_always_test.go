package hub_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// creator is a user with all rights on the fleet's objects in the workspace but to approve and to
// restore them, who may also create and change namespaces anywhere.
func (f fixture) creator() client.Client {
	f.t.Helper()
	name := "creator-" + f.workspace
	all := []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}}
	ref := func(kind string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
	}
	for _, o := range []client.Object{
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: name}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"*"}, Verbs: all},
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: all},
		}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: name}, RoleRef: ref("Role"), Subjects: subjects},
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: all,
			}},
		},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: ref("ClusterRole"), Subjects: subjects},
	} {
		f.check(f.Create(context.Background(), o))
		f.t.Cleanup(func() { _ = f.Delete(context.Background(), o) }) // the control plane may be gone
	}
	config := rest.CopyConfig(f.cluster.Config)
	config.Impersonate.UserName = name
	made, err := client.New(config, client.Options{Scheme: f.Scheme(), Mapper: f.RESTMapper()})
	f.check(err)
	return made
}

// forbids waits until an admission policy refuses something with a message.
func (f fixture) forbids(what, says string, try func() error) {
	f.t.Helper()
	f.eventually(what+" is refused", func() error {
		if err := try(); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), says) {
			return fmt.Errorf("it says %v", err)
		}
		return nil
	})
}

// TestAnEpochThatTheHubDidNotCountEndsAccessAllTheSame: only a user who may restore records creates
// one that counts revocations already, with a number that cannot be counted further.
func TestAnEpochThatTheHubDidNotCountEndsAccessAllTheSame(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	forged := func(epoch string) *fleet.Cluster {
		return &fleet.Cluster{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: f.workspace, Name: "forged", Annotations: map[string]string{clusterv1beta1.AnnotationMemberEpoch: epoch},
			},
			Spec: fleet.ClusterSpec{ClientID: "forged"},
		}
	}
	creator := f.creator()
	for _, epoch := range []string{"1", fmt.Sprint(math.MaxInt64), "-3"} {
		f.forbids("a Cluster with epoch "+epoch, "muster/member-epoch", func() error {
			return creator.Create(ctx, forged(epoch), client.DryRunAll)
		})
	}
	fresh := forged(fmt.Sprint(math.MaxInt64))
	fresh.Name, fresh.Spec.ClientID = "fresh", "fresh"
	f.check(f.asHub().Create(ctx, fresh))
	f.untilEpoch("fresh", "1")
	f.createdBeforeThePolicy(forged(fmt.Sprint(math.MaxInt64)))
	_, values := f.token("new-token", "")
	m := f.join(values, map[string]any{"clientID": "forged"})
	f.untilReady("forged", "Ready")
	bearer, namespace := m.credential()
	m.stop()

	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "held", Finalizers: []string{"example.com/held"}}}
	f.check(f.Create(ctx, held))
	f.check(revoke(f.Client, f.clusterRecord("forged"), `"true"`))
	cluster := f.untilReady("forged", "Revoking")
	if said := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionReady).Message; !strings.Contains(said, "Namespace "+namespace) {
		t.Errorf("it says %q", said)
	}
	f.refused("it lists", f.as(bearer).List(ctx, &fleet.BundleDeploymentList{}, client.InNamespace(namespace)))
	f.check(revoke(f.Client, f.clusterRecord("forged"), "null")) // before the namespace is gone
	f.untilReady("forged", "NamespaceTerminating")
	f.check(merge(f, held, `{"metadata":{"finalizers":null}}`))
	f.untilEpoch("forged", "1")
	f.untilReady("forged", "IdentityMissing")
	if err := gone(f.get(&corev1.Namespace{}, "", namespace)); err != nil {
		t.Errorf("the namespace in which a revoked member may watch is made anew: %v", err)
	}
}

// createdBeforeThePolicy creates a Cluster with its member namespace, as both were before the
// hub looked at epochs.
func (f fixture) createdBeforeThePolicy(cluster *fleet.Cluster) {
	f.t.Helper()
	ctx := context.Background()
	cluster.Labels = map[string]string{fleet.LabelClusterManagement: "nobody"}
	f.check(f.asHub().Create(ctx, cluster))
	state, _, err := membernamespace.OfCluster(cluster).CreateNamespace(ctx, f.asHub(), f.Client)
	f.check(err)
	if state != membernamespace.NamespaceOurs {
		f.t.Fatalf("its namespace is %s", state)
	}
	f.check(merge(f, f.clusterRecord(cluster.Name), `{"metadata":{"labels":{"fleet.cattle.io/cluster-management":null}}}`))
}

// untilEpoch waits until the hub has counted the revocations of a Cluster to a number.
func (f fixture) untilEpoch(name, epoch string) {
	f.t.Helper()
	f.eventually("the epoch of "+name+" is "+epoch, func() error {
		var cluster fleet.Cluster
		if err := f.get(&cluster, f.workspace, name); err != nil {
			return err
		}
		if is := cluster.Annotations[clusterv1beta1.AnnotationMemberEpoch]; is != epoch {
			return fmt.Errorf("it is %q", is)
		}
		return nil
	})
}

// TestTheLabelOfAnotherManagerKeepsNoAccess: a user who may edit a Cluster labels it as another
// manager's after its agent has joined.
func TestTheLabelOfAnotherManagerKeepsNoAccess(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	_, values := f.token("new-token", "")
	m := f.join(values, map[string]any{"clientID": "labelled"})
	name := naming.Cluster("labelled")
	f.untilReady(name, "Ready")
	bearer, namespace := m.credential()
	m.stop()
	f.check(merge(f.creator(), f.clusterRecord(name), `{"metadata":{"labels":{"fleet.cattle.io/cluster-management":"x"}}}`))
	cluster := f.untilReady(name, "ManagedElsewhere")
	if said := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionReady).Message; !strings.Contains(said,
		"fleet.cattle.io/cluster-management=x") {
		t.Errorf("it says %q", said)
	}
	f.check(revoke(f.Client, f.clusterRecord(name), `"true"`))
	f.untilRevoked(name)
	f.refused("it lists", f.as(bearer).List(ctx, &fleet.BundleDeploymentList{}, client.InNamespace(namespace)))
	f.eventually("the namespace is gone", func() error { return gone(f.get(&corev1.Namespace{}, "", namespace)) })
	f.check(revoke(f.Client, f.clusterRecord(name), "null"))
	f.untilReady(name, "ManagedElsewhere")
	f.check(merge(f, f.clusterRecord(name), `{"metadata":{"labels":{"fleet.cattle.io/cluster-management":null}}}`))
	f.untilReady(name, "IdentityMissing")
}

// TestTheLabelOfAnotherManagerKeepsNoAccessWithoutTheFinalizer takes the finalizer off by hand,
// too.
func TestTheLabelOfAnotherManagerKeepsNoAccessWithoutTheFinalizer(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	m := f.join(values, map[string]any{"clientID": "bare"})
	name := naming.Cluster("bare")
	f.untilReady(name, "Ready")
	bearer, namespace := m.credential()
	m.stop()
	f.check(merge(f.creator(), f.clusterRecord(name), `{"metadata":{"finalizers":null,"labels":{"fleet.cattle.io/cluster-management":"x"}}}`))
	f.check(revoke(f.Client, f.clusterRecord(name), `"true"`))
	f.untilRevoked(name)
	f.refused("it lists", f.as(bearer).List(context.Background(), &fleet.BundleDeploymentList{}, client.InNamespace(namespace)))
	f.eventually("the namespace is gone", func() error { return gone(f.get(&corev1.Namespace{}, "", namespace)) })
}

// TestRevokedIsSaidOnlyWhenNothingIsLeft plays a user who has removed the hub's label from a
// RoleBinding. The hub does not delete the RoleBinding then.
func TestRevokedIsSaidOnlyWhenNothingIsLeft(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	agent := f.legacyJoin(values, "kept")
	f.eventually("the agent beats", func() error { return agent.beat(time.Now()) })
	name := naming.Cluster("kept")
	f.untilReady(name, "Ready")
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: naming.MemberNamespace(f.workspace, name)}}
	f.check(revoke(f.Client, f.clusterRecord(name), `"true"`))
	f.untilRevoked(name)
	f.check(gone(f.get(&rbacv1.RoleBinding{}, binding.Namespace, binding.Name)))

	// As if the label had been taken off before.
	binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: binding.Name}
	binding.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: binding.Name, Name: naming.MemberServiceAccount}}
	f.check(f.Create(context.Background(), binding))
	f.check(merge(f, f.clusterRecord(name), `{"metadata":{"labels":{"touched":"true"}}}`))
	cluster := f.untilReady(name, "Revoking")
	if said := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionReady).Message; !strings.Contains(said,
		"RoleBinding "+binding.Namespace+"/"+binding.Name+" remains") {
		t.Errorf("it says %q", said)
	}
	f.check(f.Delete(context.Background(), binding))
	f.untilRevoked(name)
}

// TestAMemberNamespaceWhoseClusterIsGoneEnds deletes a Cluster without its finalizer while no hub
// runs. What runs on the cluster stays.
func TestAMemberNamespaceWhoseClusterIsGoneEnds(t *testing.T) {
	f := newAlone(t, "")
	ctx := context.Background()
	e := f.elsewhere("lost")
	e.release()
	bearer, namespace := (&member{fixture: e.on, agentNamespace: e.agent.agentNamespace}).credential()
	before := e.uidOf(e.workspace)
	f.hub.Kill()
	var was fleet.Cluster
	f.check(f.get(&was, f.workspace, e.name))
	f.check(f.Delete(ctx, was.DeepCopy()))
	f.check(merge(f, f.clusterRecord(e.name), `{"metadata":{"finalizers":null}}`))
	f.hub.Start()
	f.eventually("the namespace is gone", func() error { return gone(f.get(&corev1.Namespace{}, "", namespace)) })
	f.refused("its agent lists", f.as(bearer).List(ctx, &fleet.BundleDeploymentList{}, client.InNamespace(namespace)))
	e.eventually("the agent knows that it is no member any more", func() error {
		if state, reason, _ := e.agent.agent.Status(); state == "Joined" {
			return fmt.Errorf("it is %s: %s", state, reason)
		}
		return nil
	})
	if after := e.uidOf(e.workspace); after != before || before == "" {
		t.Errorf("what was delivered was %q and is %q", before, after)
	}
}

// TestTheNextClusterOfThatNameGetsNeitherTheAgentNorTheNamespace does so, and creates another
// Cluster of the same name before the hub is back.
func TestTheNextClusterOfThatNameGetsNeitherTheAgentNorTheNamespace(t *testing.T) {
	f := newAlone(t, "")
	ctx := context.Background()
	e := f.elsewhere("former")
	e.release()
	bearer, namespace := (&member{fixture: e.on, agentNamespace: e.agent.agentNamespace}).credential()
	before := e.uidOf(e.workspace)
	f.hub.Kill()
	f.check(f.Delete(ctx, f.clusterRecord(e.name)))
	f.check(merge(f, f.clusterRecord(e.name), `{"metadata":{"finalizers":null}}`))
	next := f.clusterRecord(e.name)
	next.Spec.ClientID = "next"
	f.check(f.Create(ctx, next))
	f.hub.Start()
	f.untilReady(e.name, "NamespaceTerminating")
	f.untilReady(e.name, "WaitCheckIn")
	var is corev1.Namespace
	f.check(f.get(&is, "", namespace))
	if uid := is.Annotations[recordUID]; uid != string(next.UID) {
		t.Errorf("the namespace is made for %q, want %q", uid, next.UID)
	}
	f.refused("the former agent lists", f.as(bearer).List(ctx, &fleet.BundleDeploymentList{}, client.InNamespace(namespace)))
	e.eventually("the former agent knows that it is no member any more", func() error {
		if state, reason, _ := e.agent.agent.Status(); state == "Joined" {
			return fmt.Errorf("it is %s: %s", state, reason)
		}
		return nil
	})
	if after := e.uidOf(e.workspace); after != before || before == "" {
		t.Errorf("what was delivered was %q and is %q", before, after)
	}
}
