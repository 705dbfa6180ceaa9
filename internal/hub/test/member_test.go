package hub_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/agent"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

func leaseOf(namespace string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: naming.HeartbeatLease}}
}

func TestUpstreamAgentsOfBothGenerationsJoinAndBeat(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	before016 := map[string]string{"token": values["token"], "systemRegistrationNamespace": values["systemRegistrationNamespace"]}
	for id, v := range map[string]map[string]string{"generation-0.16": values, "generation-0.10": before016} {
		agent := f.legacyJoin(v, id)
		name := naming.Cluster(id)
		want := map[string]string{
			"clusterName": name, "clusterNamespace": f.workspace, "systemNamespace": naming.SystemNamespace,
			"deploymentNamespace": naming.MemberNamespace(f.workspace, name), "token": agent.answer["token"],
		}
		if fmt.Sprint(agent.answer) != fmt.Sprint(want) {
			t.Errorf("%s: the Secret has %v", id, agent.answer)
		}
		if claims, err := credential.ReadClaims(agent.answer["token"]); err != nil || !claims.Lasting() {
			t.Errorf("%s: the credential ends at %s (%v); the agent cannot renew it", id, claims.Expires, err)
		}
		seen := time.Now().Add(-time.Hour) // a member's clock may be wrong
		f.eventually("the agent beats", func() error { return agent.beat(seen) })
		cluster := f.untilReady(name, "Ready")
		if cluster.Status.Agent.LastSeen.Unix() != seen.Unix() || cluster.Status.Agent.Namespace != "cattle-fleet-system" {
			t.Errorf("%s: status.agent is %+v", id, cluster.Status.Agent)
		}
		f.eventually("the answer is gone", func() error {
			secret := naming.CredentialSecret(id, "r4nd0m-"+f.workspace)
			for _, o := range []client.Object{&corev1.Secret{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}} {
				if err := f.get(o, values["systemRegistrationNamespace"], secret); !apierrors.IsNotFound(err) {
					return fmt.Errorf("%T: %v", o, err)
				}
			}
			return nil
		})
	}
}

func issue(c client.Client, namespace, account string) error {
	_, err := kube.RequestToken(context.Background(), c.SubResource("token"),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}, time.Hour)
	return err
}

func (f fixture) refused(what string, err error) {
	f.t.Helper()
	if !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
		f.t.Errorf("%s: got %v, want it refused", what, err)
	}
}

func TestSilentMemberIsShownAsLostAndComesBackWithOneBeat(t *testing.T) {
	f := newAlone(t, "")
	_, values := f.token("new-token", "")
	m := f.join(values, map[string]any{"clientID": "silent"})
	name := naming.Cluster("silent")
	f.untilReady(name, "Ready")
	m.stop() // lost after three periods of ten seconds
	f.untilReady(name, "AgentLost")
	f.eventually("an event says so", func() error { return f.event("AgentLost", name, "no heartbeat since") })
	f.restartHub()
	f.untilReady(name, "AgentLost")
	m.start()
	f.untilReady(name, "Ready")
	f.eventually("an event says so", func() error { return f.event("AgentOnline", name, "") })
}

func TestAnUpgradeOfTheAgentOrOfKubernetesIsAnEvent(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	m := f.join(values, map[string]any{"clientID": "upgraded"})
	cluster := f.untilReady(naming.Cluster("upgraded"), "Ready")
	m.stop()
	report := &clusterv1beta1.InternalMemberCluster{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Status.Namespace, Name: cluster.Name}}
	f.check(f.Status().Patch(context.Background(), report,
		client.RawPatch(types.MergePatchType, []byte(`{"status":{"agentVersion":"v0.0.1","kubernetesVersion":"v1.30.0"}}`))))
	f.eventually("the Cluster shows it", func() error {
		if err := f.get(&cluster, f.workspace, cluster.Name); err != nil {
			return err
		}
		if is := cluster.Status.Agent; is.Version != "v0.0.1" || is.KubernetesVersion != "v1.30.0" {
			return fmt.Errorf("it shows %s and %s", is.Version, is.KubernetesVersion)
		}
		return nil
	})
	m.start()
	f.eventually("an event tells of the agent's", func() error { return f.event("AgentVersionChanged", cluster.Name, ", before v0.0.1") })
	f.eventually("an event tells of Kubernetes'", func() error {
		return f.event("KubernetesVersionChanged", cluster.Name, ", before v1.30.0")
	})
}

func TestReportOfAClusterEditedByHandIsHealed(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	f.join(values, map[string]any{"clientID": "edited"})
	cluster := f.untilReady(naming.Cluster("edited"), "Ready")
	var report clusterv1beta1.InternalMemberCluster
	f.eventually("the spec is edited", func() error {
		if err := f.get(&report, cluster.Status.Namespace, cluster.Name); err != nil {
			return err
		}
		report.Spec = clusterv1beta1.InternalMemberClusterSpec{State: "Leave", HeartbeatPeriodSeconds: 600}
		return f.Update(context.Background(), &report)
	})
	f.eventually("the spec is healed", func() error {
		if err := f.get(&report, cluster.Status.Namespace, cluster.Name); err != nil {
			return err
		}
		if report.Spec.State != clusterv1beta1.ClusterStateJoin || report.HeartbeatPeriod() > time.Minute {
			return fmt.Errorf("it is %+v", report.Spec)
		}
		return nil
	})
}

func TestTheSpecOfAClusterSetsTheHeartbeatPeriod(t *testing.T) {
	f := newAlone(t, "") // the default period grows with the members of a hub
	_, values := f.token("new-token", "")
	f.join(values, map[string]any{"clientID": "paced"})
	cluster := f.untilReady(naming.Cluster("paced"), "Ready")
	set := func(seconds string) error {
		return f.Patch(context.Background(), &cluster, client.RawPatch(types.MergePatchType,
			[]byte(`{"spec":{"heartbeatPeriodSeconds":`+seconds+`}}`)))
	}
	for _, step := range []struct {
		seconds string
		want    time.Duration
	}{{"300", 5 * time.Minute}, {"2", 2 * time.Second}, {"null", 10 * time.Second}} {
		f.check(set(step.seconds))
		f.eventually("the agent is asked for the period "+step.seconds, func() error {
			var report clusterv1beta1.InternalMemberCluster
			if err := f.get(&report, cluster.Status.Namespace, cluster.Name); err != nil {
				return err
			}
			if report.HeartbeatPeriod() != step.want {
				return fmt.Errorf("it is %s", report.HeartbeatPeriod())
			}
			return nil
		})
	}
	for _, wrong := range []string{"0", "601"} {
		if err := set(wrong); err == nil || !strings.Contains(err.Error(), "spec.heartbeatPeriodSeconds") {
			t.Errorf("a period of %s s: %v", wrong, err)
		}
	}
}

func TestWhatIsDeletedOfAMemberByMistakeHealsOrSaysWhatToDo(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	m := f.join(values, map[string]any{"clientID": "heal"})
	name := naming.Cluster("heal")
	namespace := f.untilReady(name, "Ready").Status.Namespace
	bearer, _ := m.credential()
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	for _, o := range []client.Object{
		&rbacv1.RoleBinding{ObjectMeta: meta("muster-member")},
		&clusterv1beta1.InternalMemberCluster{ObjectMeta: meta(name)},
		leaseOf(namespace),
	} {
		f.check(f.Delete(context.Background(), o.DeepCopyObject().(client.Object)))
		f.eventually(fmt.Sprintf("%T is back", o), func() error { return f.get(o, namespace, o.GetName()) })
	}
	f.eventually("the agent beats again", func() error { return beat(f.as(bearer), credential.Answer{DeploymentNamespace: namespace}) })
	f.check(f.Delete(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	f.eventually("the namespace is back", func() error {
		var made corev1.Namespace
		if err := f.get(&made, "", namespace); err != nil {
			return err
		}
		if made.DeletionTimestamp != nil {
			return errors.New("it is going")
		}
		return nil
	})
	f.untilReady(name, "IdentityMissing")
	f.eventually("an event says so", func() error { return f.event("IdentityMissing", name, "new registration token") })
	f.eventually("the agent says that it needs a registration token", func() error {
		if state, reason, _ := m.agent.Status(); state != agent.Waiting || !strings.Contains(reason, "new registration token") {
			return fmt.Errorf("it is %s: %s", state, reason)
		}
		return nil
	})
	m.bootstrap(f.values("new-token"))
	f.untilReady(name, "Ready")
}

func TestDeletedClusterTakesItsMemberNamespaceIdentityAndRequestsWithIt(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	m := f.join(values, map[string]any{"clientID": "leave"})
	legacy := f.legacyJoin(values, "leave-legacy")
	f.eventually("the upstream agent beats", func() error { return legacy.beat(time.Now()) })
	bearer, namespace := m.credential()
	for _, id := range []string{"leave", "leave-legacy"} {
		cluster := f.untilReady(naming.Cluster(id), "Ready")
		f.check(f.Delete(context.Background(), &cluster))
	}
	f.eventually("the Clusters are gone", func() error {
		if left := f.clusters(); len(left) > 0 {
			return fmt.Errorf("%d are left", len(left))
		}
		return nil
	})
	f.eventually("all that belonged to them is gone", func() error {
		for _, ns := range []string{namespace, legacy.answer["deploymentNamespace"]} {
			if err := gone(f.readsContents(ns)); err != nil {
				return err
			}
			for o, key := range map[client.Object]client.ObjectKey{
				&corev1.Namespace{}:   {Name: ns},
				&rbacv1.Role{}:        {Namespace: f.workspace, Name: ns},
				&rbacv1.RoleBinding{}: {Namespace: f.workspace, Name: ns},
			} {
				if err := f.Get(context.Background(), key, o); !apierrors.IsNotFound(err) {
					return fmt.Errorf("%T %s: %v", o, key, err)
				}
			}
		}
		var requests fleet.ClusterRegistrationList
		if err := f.List(context.Background(), &requests, client.InNamespace(f.workspace)); err != nil || len(requests.Items) > 0 {
			return fmt.Errorf("%d requests are left (%v)", len(requests.Items), err)
		}
		return nil
	})
	f.refused("the credential of a cluster that left", beat(f.as(bearer), credential.Answer{DeploymentNamespace: namespace}))
}
