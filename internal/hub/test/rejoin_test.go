package hub_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// give puts another registration token in the place of the one before, as helm upgrade does,
// where the agent runs.
func (f fixture) give(on fixture, agentNamespace string, values map[string]string) {
	f.t.Helper()
	ctx := context.Background()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: agentNamespace, Name: naming.AgentBootstrapSecret}}
	f.check(client.IgnoreNotFound(on.Delete(ctx, secret.DeepCopy())))
	secret.StringData = map[string]string{"apiServerURL": f.cluster.Config.Host, "apiServerCA": string(f.cluster.Config.CAData)}
	for _, key := range []string{"token", "tokenName", "clusterNamespace"} {
		secret.StringData[key] = values[key]
	}
	f.check(on.Create(ctx, secret))
}

// saysReady waits until the Ready condition of a Cluster has a reason, and a message with all
// texts.
func (f fixture) saysReady(name, reason string, texts ...string) {
	f.t.Helper()
	f.eventually("Cluster "+name+" says "+reason, func() error {
		var cluster fleet.Cluster
		if err := f.get(&cluster, f.workspace, name); err != nil {
			return err
		}
		ready := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionReady)
		if ready == nil || ready.Reason != reason {
			return fmt.Errorf("its condition Ready is %+v", ready)
		}
		for _, text := range texts {
			if !strings.Contains(ready.Message, text) {
				return fmt.Errorf("it says %q, not %q", ready.Message, text)
			}
		}
		return nil
	})
}

func TestAClusterMovesToAnotherWorkspaceAndBackByATokenOfIt(t *testing.T) {
	f := newFixture(t)
	g := f.neighbour()
	_, there := f.token("new-token", "")
	_, elsewhere := g.token("other-token", "")
	m := f.join(there, map[string]any{"clientID": "mover"})
	name := naming.Cluster("mover")
	first := f.untilReady(name, "Ready")
	f.give(m.fixture, m.agentNamespace, elsewhere)
	g.untilReady(name, "Ready")
	f.saysReady(name, "AgentLeft", "registered as "+g.workspace+"/"+name, "its deliveries stay", "delete this Cluster")

	_, again := f.token("another-token", "")
	f.give(m.fixture, m.agentNamespace, again)
	back := f.untilReady(name, "Ready")
	g.saysReady(name, "AgentLeft", "registered as "+f.workspace+"/"+name)
	if back.UID != first.UID {
		t.Error("the Cluster is another one")
	}
	record := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: g.workspace, Name: name}}
	g.check(g.Delete(context.Background(), record))
	g.eventually("the Cluster that was left goes when it is deleted", func() error {
		if err := g.get(record, g.workspace, name); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading it: %v", err)
		}
		return nil
	})
	f.check(f.reason(name, "Ready"))
}

// reasons gathers every reason that the Ready condition of a Cluster has from now on.
func (f fixture) reasons(name string) (all func() []string) {
	f.t.Helper()
	seen := f.follow(&fleet.ClusterList{}, client.InNamespace(f.workspace), client.MatchingFields{"metadata.name": name})
	var mu sync.Mutex
	var reasons []string
	go func() {
		for event := range seen {
			cluster, ok := event.Object.(*fleet.Cluster)
			if !ok {
				continue
			}
			if ready := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionReady); ready != nil {
				mu.Lock()
				reasons = append(reasons, ready.Reason)
				mu.Unlock()
			}
		}
	}()
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string{}, reasons...)
	}
}

func TestANewTokenGivesTheSameClusterAnotherCredentialAndItIsNeverLost(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	m := f.join(values, map[string]any{"clientID": "again"})
	name := naming.Cluster("again")
	first := f.untilReady(name, "Ready")
	before, _ := m.credential()
	reasons := f.reasons(name)
	_, fresh := f.token("fresh-token", "")
	f.give(m.fixture, m.agentNamespace, fresh)
	f.eventually("another credential is stored", func() error {
		if after, _ := m.credential(); after == before {
			return fmt.Errorf("it is the same")
		}
		return nil
	})
	f.eventually("one granted request is left", func() error { return f.onlyGranted(name) })
	cluster := f.untilReady(name, "Ready")
	if cluster.UID != first.UID || len(f.clusters()) != 1 {
		t.Errorf("there are %d Clusters", len(f.clusters()))
	}
	for _, reason := range reasons() {
		// The hub deletes the identity before it makes the new one. On a busy machine the Cluster is
		// reconciled in between, and says so for that moment.
		if reason != "Ready" && reason != "IdentityMissing" {
			t.Errorf("meanwhile it was %s", reason)
		}
	}
	if _, reason, ready := m.agent.Status(); !ready {
		t.Errorf("the agent is no longer joined: %s", reason)
	}
}

func TestATokenThatExpiredLeavesTheClusterWhereItIsAndTheHubSaysWhy(t *testing.T) {
	f := newFixture(t)
	g := f.neighbour()
	_, values := f.token("new-token", "")
	m := f.join(values, map[string]any{"clientID": "stays"})
	name := naming.Cluster("stays")
	f.untilReady(name, "Ready")
	gone, elsewhere := g.token("other-token", "")
	g.check(g.Delete(context.Background(), &gone))
	f.give(m.fixture, m.agentNamespace, elsewhere)
	f.saysReady(name, "Ready", "the agent is healthy", "registers with another token")
	m.check(m.Delete(context.Background(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.agentNamespace, Name: naming.AgentBootstrapSecret},
	}))
	f.eventually("nothing is said of it any more", func() error {
		cluster := f.untilReady(name, "Ready")
		if ready := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionReady); ready.Message != "" {
			return fmt.Errorf("it says %q", ready.Message)
		}
		return nil
	})
	if len(g.clusters()) != 0 {
		t.Error("it registered")
	}
}

func TestAClusterThatMovesKeepsWhatWasDeliveredUnlessItsRecordSaysDelete(t *testing.T) {
	t.Parallel()
	for policy, says := range map[string]string{"Orphan": "its deliveries stay", "Delete": "its deliveries were removed"} {
		t.Run(policy, func(t *testing.T) {
			f := newFixture(t)
			g := f.neighbour()
			e := f.elsewhere("leaves-" + strings.ToLower(policy))
			target, shop := e.release(), e.placed()
			e.annotate(policy)
			if policy == "Delete" {
				f.eventually("the agent is asked", func() error {
					var report clusterv1beta1.InternalMemberCluster
					err := f.get(&report, naming.MemberNamespace(f.workspace, e.name), e.name)
					if err == nil && report.Spec.LeavePolicy != clusterv1beta1.LeaveDelete {
						err = fmt.Errorf("it is asked for %+v", report.Spec)
					}
					return err
				})
			}
			_, values := g.token("other-token", "")
			g.give(e.on, e.agent.agentNamespace, values)
			g.eventually("it has moved", func() error {
				var cluster fleet.Cluster
				if err := g.get(&cluster, g.workspace, e.name); err != nil || cluster.Status.Agent.LastSeen.IsZero() {
					return fmt.Errorf("no beat: %v", err)
				}
				return nil
			})
			f.saysReady(e.name, "AgentLeft", "registered as "+g.workspace, says)
			for _, object := range []struct{ namespace, name string }{{target, f.workspace}, {shop, "settings"}} {
				err := e.on.get(&corev1.ConfigMap{}, object.namespace, object.name)
				if kept := err == nil; kept != (policy == "Orphan") {
					t.Errorf("%s/%s is kept: %t: %v", object.namespace, object.name, kept, err)
				}
			}
			if policy == "Delete" && len(e.releases()) != 0 {
				t.Errorf("the releases %v are left", e.releases())
			}
			f.check(f.Delete(context.Background(), e.record()))
			e.untilGone()
		})
	}
}
