package agent

import (
	"fmt"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/kubeclient"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// recordingHub is an address of the hub that knows which watches and connections are open there.
type recordingHub struct {
	*httptest.Server
	mu          sync.Mutex
	watches     map[string]int
	connections int
}

func (h *testHub) recorded() *recordingHub {
	h.t.Helper()
	target, err := url.Parse(h.config.Host)
	check(h.t, err)
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(h.config))
	check(h.t, err)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: transport, FlushInterval: -1,
		ErrorLog: log.New(h.t.Output(), "", 0),
	}
	r := &recordingHub{watches: map[string]int{}}
	r.Server = testkube.ServeTLS(h.t, func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Query().Has("watch") {
			resource := path.Base(request.URL.Path)
			r.count(func() { r.watches[resource]++ })
			defer r.count(func() { r.watches[resource]-- })
		}
		proxy.ServeHTTP(w, request)
	}, func(s *httptest.Server) {
		s.EnableHTTP2 = true
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				r.count(func() { r.connections++ })
			case http.StateClosed, http.StateHijacked:
				r.count(func() { r.connections-- })
			case http.StateActive, http.StateIdle:
			}
		}
	})
	return r
}

func (r *recordingHub) count(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

// open returns the watches that are open, by resource, and the number of connections.
func (r *recordingHub) open() (watches map[string]int, connections int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	watches = maps.Clone(r.watches)
	maps.DeleteFunc(watches, func(_ string, n int) bool { return n == 0 })
	return watches, r.connections
}

// untilWatched waits until these watches are open, and logs for docs/benchmarks.md how
// many connections are.
func (r *recordingHub) untilWatched(agent *running, when string, want map[string]int) {
	agent.t.Helper()
	agent.until(when+" these watches are open", func() error {
		watches, connections := r.open()
		if !maps.Equal(watches, want) {
			return fmt.Errorf("it has %v on %d connections, want %v", watches, connections, want)
		}
		return nil
	})
	watches, connections := r.open()
	agent.t.Logf("%s: %v on %d connections", when, watches, connections)
}

// values are those for an agent that reaches the hub at the address that is recorded.
func (r *recordingHub) values(hub *testHub) map[string][]byte {
	values := hub.values()
	values["apiServerURL"] = []byte(r.URL)
	values["apiServerCA"] = testkube.Cluster{}.Behind(r.Server).Config.CAData
	return values
}

// mayBeDelivered gives the member the rights on all that is placed on it.
func (h *testHub) mayBeDelivered() {
	h.t.Helper()
	h.prepare(time.Hour)
	h.bind(h.namespace, "works", naming.MemberServiceAccount,
		rbacv1.PolicyRule{
			APIGroups: []string{placement.GroupVersion.Group}, Resources: []string{"works", "works/status"},
			Verbs: []string{"get", "list", "watch", "patch", "update"},
		},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets", "serviceaccounts"}, Verbs: []string{"get"}},
	)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"contents"}, Verbs: []string{"get"}},
	}}
	_, err := h.kube.RbacV1().ClusterRoles().Create(h.t.Context(), role, metav1.CreateOptions{})
	check(h.t, err)
	_, err = h.kube.RbacV1().ClusterRoleBindings().Create(h.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: h.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: h.namespace},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: naming.MemberServiceAccount, Namespace: h.namespace}},
	}, metav1.CreateOptions{})
	check(h.t, err)
}

func manifest(namespace, name string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":%q,"name":%q}}`, namespace, name)
}

// place places a ConfigMap on the member by a BundleDeployment.
func (h *testHub) place(namespace, name string) {
	h.t.Helper()
	content, err := delivery.Pack([]fleet.BundleResource{{Name: "a.yaml", Content: manifest(namespace, name)}})
	check(h.t, err)
	contents, err := kubeclient.Of[fleet.Content, fleet.ContentList](h.connection, fleet.GroupVersion.WithResource("contents"), "")
	check(h.t, err)
	_, err = contents.Create(h.t.Context(), content, metav1.CreateOptions{})
	check(h.t, err)
	placed := &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{fleet.LabelBundleName: name, fleet.LabelBundleNamespace: h.workspace},
	}}
	placed.Spec.Options.DefaultNamespace = namespace
	placed.Spec.DeploymentID, err = delivery.DeploymentID(content.Name, placed.Spec.Options)
	check(h.t, err)
	_, err = h.deployments().Create(h.t.Context(), placed, metav1.CreateOptions{})
	check(h.t, err)
}

// placeWork places a ConfigMap on the member by a Work.
func (h *testHub) placeWork(namespace, name string) {
	h.t.Helper()
	admin, err := dynamic.NewForConfig(h.config)
	check(h.t, err)
	object := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": namespace, "name": name}}
	_, err = admin.Resource(hubclient.Works).Namespace(h.namespace).Create(h.t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": placement.GroupVersion.String(), "kind": "Work", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"workload": map[string]any{"manifests": []any{object}}},
	}}, metav1.CreateOptions{})
	check(h.t, err)
}

// untilApplied waits until a ConfigMap is on the member.
func (m *testMember) untilApplied(agent *running, namespace, name string) {
	m.t.Helper()
	agent.until(name+" is on the member", func() error {
		_, err := m.kube.CoreV1().ConfigMaps(namespace).Get(m.t.Context(), name, metav1.GetOptions{})
		return err
	})
}

var startedAs = regexp.MustCompile(`"Deployer started" "pid"=(\d+)`)

// killDeployer kills the deployer that runs.
func (r *running) killDeployer() {
	r.t.Helper()
	started := startedAs.FindAllStringSubmatch(r.lines(), -1)
	if len(started) == 0 {
		r.t.Fatalf("no deployer was started:\n%s", r.lines())
	}
	pid, err := strconv.Atoi(started[len(started)-1][1])
	check(r.t, err)
	check(r.t, syscall.Kill(pid, syscall.SIGKILL))
}

func TestWhatTheDeployerWatchesTheAgentDoesNotAndAKillLosesNothing(t *testing.T) {
	hub, member := newCluster(t)
	member.mayDeliver()
	hub.serve(hub.grant)
	hub.mayBeDelivered()
	recorded := hub.recorded()
	member.bootstrap(recorded.values(hub))
	target := makeNamespace(t, hub.kube, "target-")
	kubeconfig := filepath.Join(testkube.Start(t, "agent").Dir, "kubeconfig")
	agent := member.start(func(o *Options) {
		o.Delivery = Delivery{Path: testkube.Build(t, "muster-deployer"), Arguments: []string{
			"--kubeconfig=" + kubeconfig, "--namespace=" + member.namespace, "--holder=" + member.namespace,
		}}
	})
	agent.untilJoined()
	report, deployments, works := "internalmemberclusters", "bundledeployments", "works"
	one := map[string]int{report: 1, deployments: 1, works: 1}
	recorded.untilWatched(agent, "with nothing placed", one)

	hub.place(target, "web")
	member.untilApplied(agent, target, "web")
	recorded.untilWatched(agent, "with a Bundle", one)

	hub.placeWork(target, "job")
	member.untilApplied(agent, target, "job")
	recorded.untilWatched(agent, "with a Bundle and a Work", one)

	for _, name := range []string{"a", "b"} {
		agent.killDeployer()
		hub.place(target, "bundle-"+name)
		hub.placeWork(target, "work-"+name)
		member.untilApplied(agent, target, "bundle-"+name)
		member.untilApplied(agent, target, "work-"+name)
		recorded.untilWatched(agent, "after a kill", one)
	}
}
