package hub_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"

	"github.com/muster-fleet/muster/internal/agent"
	"github.com/muster-fleet/muster/internal/credential"
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
		// later is set for the writes after the credential was stored.
		later bool
	}{
		"before it asks":                         {http.MethodPost, "/clusterregistrations", false},
		"before it has stored the credential":    {http.MethodPut, "/secrets/" + naming.AgentSecret, false},
		"before it has said that it left":        {http.MethodPatch, "/status", true},
		"before it has forgotten the membership": {http.MethodPut, "/secrets/" + naming.AgentSecret, true},
		"before it has forgotten the token":      {http.MethodDelete, "/secrets/" + naming.AgentBootstrapSecret, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			g := f.neighbour()
			id := fmt.Sprintf("killed-%s-%t", strings.ToLower(row.method), row.later)
			cluster := naming.Cluster(id)
			old := "/namespaces/" + naming.MemberNamespace(f.workspace, cluster) + "/"
			var stored atomic.Bool
			trap := f.trap(func(r *http.Request) bool {
				put := r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/"+naming.AgentSecret)
				due := !row.later || stored.Load() && (put || strings.Contains(r.URL.Path, old))
				if r.Method == row.method && strings.HasSuffix(r.URL.Path, row.path) && due {
					return true
				}
				stored.Store(stored.Load() || put)
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
			f.saysReady(cluster, "AgentLeft", "registered as "+g.workspace)
			g.eventually("the agent has forgotten the membership before", func() error {
				var secret corev1.Secret
				if err := m.get(&secret, m.agentNamespace, naming.AgentSecret); err != nil {
					return err
				}
				if len(secret.Data["former"]) > 0 {
					return errors.New("its credential is stored")
				}
				return nil
			})
		})
	}
}
