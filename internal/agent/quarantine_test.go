package agent

import (
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/internal/testkube"
)

// TestAQuarantinedAgentBeatsAndAsksForNothingElse quarantines an agent with something deployed,
// restarts it, and ends the quarantine. What it deployed stays all the time.
func TestAQuarantinedAgentBeatsAndAsksForNothingElse(t *testing.T) {
	hub, member := newCluster(t)
	member.mayDeliver()
	hub.serve(hub.grant)
	hub.mayBeDelivered()
	recorded := hub.recorded()
	member.bootstrap(recorded.values(hub))
	target := makeNamespace(t, hub.kube, "target-")
	kubeconfig := filepath.Join(testkube.Start(t, "agent").Dir, "kubeconfig")
	withDeployer := func(o *Options) {
		o.Delivery = Delivery{Path: testkube.Build(t, "muster-deployer"), Arguments: []string{
			"--kubeconfig=" + kubeconfig, "--namespace=" + member.namespace, "--holder=" + member.namespace,
		}}
	}
	agent := member.start(withDeployer)
	agent.untilJoined()
	const report = "internalmemberclusters"
	hub.place(target, "web")
	member.untilApplied(agent, target, "web")

	hub.patchReport(`{"spec":{"quarantined":true}}`)
	recorded.untilWatched(agent, "in quarantine", map[string]int{report: 1})
	agent.until("the log says it", func() error { return containsAll(agent.lines(), "The hub has quarantined this cluster") })
	bindings := hub.kube.RbacV1().RoleBindings(hub.namespace)
	works, err := bindings.Get(t.Context(), "works", metav1.GetOptions{})
	check(t, err)
	check(t, bindings.Delete(t.Context(), works.Name, metav1.DeleteOptions{})) // as the hub does
	check(t, hub.deployments().Delete(t.Context(), "web", metav1.DeleteOptions{}))
	hub.place(target, "during")
	hub.beatsAgain(agent)
	agent.stop()
	again := member.start(withDeployer)
	again.untilJoined()
	recorded.untilWatched(again, "after a restart", map[string]int{report: 1})
	hub.beatsAgain(again)
	member.has(target, "web", true)
	member.has(target, "during", false)
	for _, kind := range []string{"BundleDeployments", "Works"} {
		if strings.Contains(again.lines(), kind) {
			t.Errorf("it asks for %s, which the hub refuses: %s", kind, again.lines())
		}
	}

	restored := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: works.Name}, RoleRef: works.RoleRef, Subjects: works.Subjects}
	_, err = bindings.Create(t.Context(), restored, metav1.CreateOptions{})
	check(t, err)
	hub.patchReport(`{"spec":{"quarantined":false}}`)
	member.untilApplied(again, target, "during")
	member.has(target, "web", true) // no hub has confirmed that it was deleted
}

// has checks whether a ConfigMap is on the member.
func (m *testMember) has(namespace, name string, want bool) {
	m.t.Helper()
	_, err := m.kube.CoreV1().ConfigMaps(namespace).Get(m.t.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		m.t.Fatal(err)
	}
	if has := err == nil; has != want {
		m.t.Errorf("%s is there: %t", name, has)
	}
}
