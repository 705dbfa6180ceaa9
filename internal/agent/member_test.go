package agent

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

func TestMain(m *testing.M) { os.Exit(testkube.Main(m)) }

var install sync.Once

// startCluster is a real API server with Muster's API, for hub and member at once.
func startCluster(t *testing.T) *rest.Config {
	t.Helper()
	cluster := testkube.Start(t, "agent")
	install.Do(func() { cluster.InstallCRDs(t) })
	t.Parallel()
	return cluster.Config
}

// testMember is a cluster in which an agent runs with exactly the rights that its chart gives it.
type testMember struct {
	t         *testing.T
	admin     *rest.Config
	config    *rest.Config
	kube      kubernetes.Interface
	namespace string
}

func newTestMember(t *testing.T, admin *rest.Config) *testMember {
	t.Helper()
	kube, err := kubernetes.NewForConfig(admin)
	check(t, err)
	m := &testMember{t: t, admin: admin, kube: kube, namespace: makeNamespace(t, kube, "agent-")}
	rights := testHub{t: t, config: admin, kube: kube}
	rights.allow(m.namespace, "fleet-agent",
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"},
			ResourceNames: []string{naming.AgentSecret, naming.AgentBootstrapSecret},
			Verbs:         []string{"list", "watch", "update", "delete"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}},
		rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{naming.AgentConfigMap},
			Verbs: []string{"list", "watch"},
		},
	)
	rights.bind(m.namespace, "hub-term", "fleet-agent",
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{naming.ObeyedTermConfigMap},
			Verbs: []string{"get", "update"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}})
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: m.namespace}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes", "pods", "namespaces"}, Verbs: []string{"get", "list", "watch"}},
		{NonResourceURLs: []string{"/readyz", "/version"}, Verbs: []string{"get"}},
	}}
	_, err = kube.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
	check(t, err)
	_, err = kube.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: m.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: m.namespace},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "fleet-agent", Namespace: m.namespace}},
	}, metav1.CreateOptions{})
	check(t, err)
	m.config = rest.AnonymousClientConfig(admin)
	m.config.BearerToken = rights.token(m.namespace, "fleet-agent", time.Hour)
	return m
}

// bootstrap gives the agent a registration token, as the chart does.
func (m *testMember) bootstrap(data map[string][]byte) {
	m.t.Helper()
	m.put(naming.AgentBootstrapSecret, data)
}

func (m *testMember) put(name string, data map[string][]byte) {
	m.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
	_, err := m.kube.CoreV1().Secrets(m.namespace).Create(context.Background(), secret, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = m.kube.CoreV1().Secrets(m.namespace).Update(context.Background(), secret, metav1.UpdateOptions{})
	}
	check(m.t, err)
}

// configure writes ConfigMap fleet-agent.
func (m *testMember) configure(config string) {
	m.t.Helper()
	object := m.configMap(config)
	_, err := m.kube.CoreV1().ConfigMaps(m.namespace).Create(context.Background(), object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = m.kube.CoreV1().ConfigMaps(m.namespace).Update(context.Background(), object, metav1.UpdateOptions{})
	}
	check(m.t, err)
}

func (*testMember) configMap(config string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: naming.AgentConfigMap}, Data: map[string]string{"config": config}}
}

func (m *testMember) remove(name string) {
	m.t.Helper()
	check(m.t, m.kube.CoreV1().Secrets(m.namespace).Delete(context.Background(), name, metav1.DeleteOptions{}))
}

func (m *testMember) secret(name string) *corev1.Secret {
	secret, err := m.kube.CoreV1().Secrets(m.namespace).Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return secret
}

// running is an agent in the test's process.
type running struct {
	*Agent
	t    *testing.T
	stop func()

	mu  sync.Mutex
	log []string
}

// start runs an agent until the test ends or stop is called.
func (m *testMember) start(change ...func(*Options)) *running {
	m.t.Helper()
	r := &running{t: m.t}
	sink := funcr.New(func(_, line string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.log = append(r.log, line)
	}, funcr.Options{})
	options := Options{Member: m.config, Namespace: m.namespace, Hostname: "pod-1", Log: logr.New(sink.GetSink())}
	for _, f := range change {
		f(&options)
	}
	agent, err := New(options)
	check(m.t, err)
	r.Agent = agent
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		agent.Run(ctx)
	}()
	r.stop = func() {
		cancel()
		<-done
	}
	m.t.Cleanup(r.stop)
	return r
}

func (r *running) lines() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.log, "\n")
}

// until waits for something that the agent brings about by itself.
func (r *running) until(what string, is func() error) {
	r.t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(r.t.Context(), 10*time.Millisecond, 40*time.Second, true, func(context.Context) (bool, error) {
		last = is()
		return last == nil, nil
	})
	if err != nil {
		r.t.Fatalf("%s: %v\n%s", what, last, r.lines())
	}
}

// untilState waits for a state whose reason says all parts.
func (r *running) untilState(want State, parts ...string) {
	r.t.Helper()
	r.until(string(want), func() error {
		state, reason, _ := r.Status()
		if state != want {
			return fmt.Errorf("state is %s: %s", state, reason)
		}
		return containsAll(reason, parts...)
	})
}

// untilJoined waits for the first beat.
func (r *running) untilJoined() {
	r.t.Helper()
	r.until("joined", func() error {
		if state, reason, joined := r.Status(); !joined {
			return fmt.Errorf("state is %s: %s", state, reason)
		}
		return nil
	})
}

// newCluster is a hub, and a member whose agent is not started yet.
func newCluster(t *testing.T) (*testHub, *testMember) {
	t.Helper()
	config := startCluster(t)
	return newTestHub(t, config), newTestMember(t, config)
}

// newJoinedCluster is a hub that grants all requests, and a member whose agent has joined.
func newJoinedCluster(t *testing.T, change ...func(*testHub)) (*testHub, *testMember, *running) {
	t.Helper()
	hub, member := newCluster(t)
	for _, f := range change {
		f(hub)
	}
	hub.serve(hub.grant)
	member.bootstrap(hub.values())
	agent := member.start()
	agent.untilJoined()
	return hub, member, agent
}
