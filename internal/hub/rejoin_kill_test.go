package hub_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/agent"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// TestAnAgentKilledAtAnyWriteOfAMoveEndsInTheNewWorkspace drops the write and everything like it, and then the agent.
func TestAnAgentKilledAtAnyWriteOfAMoveEndsInTheNewWorkspace(t *testing.T) {
	for name, row := range map[string]struct {
		method, path string
		// left is what the record before says in the end.
		left string
	}{
		"before it asks":                      {http.MethodPost, "/clusterregistrations", "AgentLeft"},
		"before it has stored the credential": {http.MethodPut, "/secrets/" + naming.AgentSecret, "AgentLeft"},
		"before it has said that it left":     {http.MethodPatch, "/status", ""},
		"before it has forgotten the token":   {http.MethodDelete, "/secrets/" + naming.AgentBootstrapSecret, "AgentLeft"},
	} {
		t.Run(name, func(t *testing.T) {
			f, g := newFixture(t), newFixture(t)
			id := "killed-" + strings.ToLower(row.method)
			cluster := naming.Cluster(id)
			old := "/namespaces/" + naming.MemberNamespace(f.workspace, cluster) + "/"
			var armed, stored atomic.Bool
			reached := make(chan struct{}, 1)
			front := f.cluster.Disguise(t, "", func(r *http.Request) {
				farewell := row.left != "" || stored.Load() && strings.Contains(r.URL.Path, old)
				if !armed.Load() || r.Method != row.method || !strings.HasSuffix(r.URL.Path, row.path) || !farewell {
					stored.Store(stored.Load() || armed.Load() && r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/"+naming.AgentSecret))
					return
				}
				select {
				case reached <- struct{}{}:
				default:
				}
				panic(http.ErrAbortHandler)
			})
			through := f
			through.cluster = front
			_, here := f.token("new-token", "")
			m := through.install(here, map[string]any{"clientID": id})
			reach := rest.CopyConfig(front.Config)
			reach.BearerToken = f.cluster.Account(t, id, "cluster-admin")
			m.options = []func(*agent.Options){func(o *agent.Options) { o.Member = reach }}
			m.start()
			f.untilReady(cluster, "Ready")
			through.eventually("the first token is forgotten", func() error {
				return gone(m.get(&corev1.Secret{}, m.agentNamespace, naming.AgentBootstrapSecret))
			})
			_, there := g.token("other-token", "")
			armed.Store(true)
			through.give(f, m.agentNamespace, there)
			select {
			case <-reached:
			case <-time.After(time.Minute):
				t.Fatal("it never comes so far")
			}
			m.stop()
			armed.Store(false)
			m.start()

			g.untilReady(cluster, "Ready")
			bearer, namespace := m.credential()
			g.eventually("the stored credential is the one in force", func() error {
				if namespace != naming.MemberNamespace(g.workspace, cluster) {
					return fmt.Errorf("it is that of %s", namespace)
				}
				return beat(g.as(bearer), credential.Answer{DeploymentNamespace: namespace})
			})
			g.eventually("one granted request is left", func() error { return g.onlyGranted(cluster) })
			if row.left != "" {
				f.saysReady(cluster, row.left, "registered as "+g.workspace)
			} else {
				f.removable(cluster)
			}
		})
	}
}

// removable says that a Cluster whose agent could not say that it left is not kept by that.
func (f fixture) removable(name string) {
	f.t.Helper()
	var cluster fleet.Cluster
	f.check(f.get(&cluster, f.workspace, name))
	if ready := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionReady); ready.Reason == "AgentLeft" {
		f.t.Error("it says that the agent has left, which nobody told")
	}
	f.check(f.Delete(context.Background(), &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: name}}))
	f.eventually("it goes", func() error { return gone(f.get(&fleet.Cluster{}, f.workspace, name)) })
}
