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
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/agent"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// trap is a way to a cluster on which an agent is killed: once armed, it drops the requests at
// which that is to happen.
type trap struct {
	fixture
	armed   atomic.Bool
	reached chan struct{}
}

// trap leads to the hub's cluster, where the agents of tests live, too.
func (f fixture) trap(at func(*http.Request) bool) *trap {
	f.t.Helper()
	t := &trap{fixture: f, reached: make(chan struct{}, 1)}
	t.cluster = f.cluster.Disguise(f.t, string(uuid.NewUUID()), func(r *http.Request) {
		if !t.armed.Load() || !at(r) {
			return
		}
		select {
		case t.reached <- struct{}{}:
		default:
		}
		panic(http.ErrAbortHandler)
	})
	return t
}

// member is what install returns, of an agent whose requests all go through the trap.
func (t *trap) member(values map[string]string, clientID string) *member {
	t.t.Helper()
	m := t.install(values, map[string]any{"clientID": clientID})
	reach := rest.CopyConfig(t.cluster.Config)
	reach.BearerToken = t.cluster.Account(t.t, m.agentNamespace, "cluster-admin")
	m.options = []func(*agent.Options){func(o *agent.Options) { o.Member = reach }}
	return m
}

// wait returns when the agent has come to the request at which it is to be killed. After that no
// request is dropped.
func (t *trap) wait(kill func()) {
	t.t.Helper()
	select {
	case <-t.reached:
	case <-time.After(5 * time.Minute):
		t.t.Fatal("it never comes so far")
	}
	kill()
	t.armed.Store(false)
}

// TestAnAgentKilledAtAnyWriteOfAMoveEndsInTheNewWorkspace drops the write and everything like it,
// and then the agent.
func TestAnAgentKilledAtAnyWriteOfAMoveEndsInTheNewWorkspace(t *testing.T) {
	t.Parallel()
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
			f := newFixture(t)
			g := f.neighbour()
			id := "killed-" + strings.ToLower(row.method)
			cluster := naming.Cluster(id)
			old := "/namespaces/" + naming.MemberNamespace(f.workspace, cluster) + "/"
			var stored atomic.Bool
			trap := f.trap(func(r *http.Request) bool {
				farewell := row.left != "" || stored.Load() && strings.Contains(r.URL.Path, old)
				if r.Method == row.method && strings.HasSuffix(r.URL.Path, row.path) && farewell {
					return true
				}
				stored.Store(stored.Load() || r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/"+naming.AgentSecret))
				return false
			})
			_, here := f.token("new-token", "")
			m := trap.member(here, id)
			m.start()
			f.untilReady(cluster, "Ready")
			f.eventually("the first token is forgotten", func() error {
				return gone(m.get(&corev1.Secret{}, m.agentNamespace, naming.AgentBootstrapSecret))
			})
			_, there := g.token("other-token", "")
			trap.armed.Store(true)
			trap.give(f, m.agentNamespace, there)
			trap.wait(m.stop)
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
		f.t.Error("it says that the agent has left, which nobody reported")
	}
	f.check(f.Delete(context.Background(), &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: name}}))
	f.eventually("it goes", func() error { return gone(f.get(&fleet.Cluster{}, f.workspace, name)) })
}
