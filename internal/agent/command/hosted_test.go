package command

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/agent"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

func TestMain(m *testing.M) { os.Exit(testkube.Main(m)) }

// TestAHostedAgentRefusesTheKubeconfigOfAnotherClusterThanItsMember has a cluster that is in turn
// the host itself, a hub, some cluster and the member.
func TestAHostedAgentRefusesTheKubeconfigOfAnotherClusterThanItsMember(t *testing.T) {
	plane := testkube.Start(t, "member")
	kube, ctx := plane.Client(t), t.Context()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: naming.SystemNamespace}}
	check(t, kube.Create(ctx, namespace))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "edge"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "agent", Image: "none"}}},
	}
	check(t, client.IgnoreAlreadyExists(kube.Create(ctx, &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "default"}})))
	check(t, kube.Create(ctx, pod))
	path := filepath.Join(t.TempDir(), "kubeconfig")
	h := &hosted{
		host:       host{secret: "agents/edge", pod: pod.Namespace + "/" + pod.Name, uid: "of-another-cluster"},
		kubeconfig: path, clock: clock.RealClock{}, options: agent.Options{Namespace: naming.SystemNamespace, Log: logr.Discard()},
	}
	usable := func() error {
		_, err := h.read()
		if err == nil {
			_, err = h.member(ctx)
		}
		return err
	}
	refused := func(step string, wants ...string) {
		t.Helper()
		err := usable()
		for _, want := range append(wants, "agents/edge") {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", step, err, want)
			}
		}
	}
	write := func(contents []byte) { check(t, os.WriteFile(path, contents, 0o600)) }
	admin := plane.Account(t, "admin", "cluster-admin")

	refused("no file", "put the kubeconfig of the member into its key kubeconfig")
	for step, contents := range map[string]string{
		"an empty file": "", "no YAML": "}{", "another kind": "apiVersion: v1\nkind: Pod\n",
		"no cluster": "apiVersion: v1\nkind: Config\ncurrent-context: x\n",
	} {
		write([]byte(contents))
		refused(step, "key kubeconfig", "is no kubeconfig with a current context: put the kubeconfig of the member there")
	}
	write([]byte(strings.Replace(string(plane.Kubeconfig(t, admin)), plane.Config.Host, "https://127.0.0.1:1", 1)))
	refused("no API server", "https://127.0.0.1:1", "does not answer")
	write(plane.Kubeconfig(t, "made-up"))
	refused("a token that has ended", "refuses the credential", "renew it", "uninstall this release")
	write(plane.Kubeconfig(t, plane.Account(t, "weak", "")))
	refused("an account without rights", "has not the rights of the agent", "hosted.part=member")

	write(plane.Kubeconfig(t, admin))
	refused("some cluster", plane.Config.Host+", a cluster without ConfigMap cattle-fleet-system/muster-hosted-agent",
		"install the member's part of the chart there with hosted.part=member")
	plane.ServeFleet(t)
	refused("a hub", "the cluster of a hub without ConfigMap")
	h.uid = string(pod.UID)
	refused("the host", "the host itself without ConfigMap")

	check(t, kube.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: naming.HostedAgentConfigMap}}))
	check(t, usable())
}

// TestAHostedAgentKeepsItsKubeconfigUntilItHasABetterOne checks the messages beside a running
// agent.
func TestAHostedAgentKeepsItsKubeconfigUntilItHasABetterOne(t *testing.T) {
	h := &hosted{host: host{secret: "agents/edge"}, kubeconfig: filepath.Join(t.TempDir(), "none"), clock: clock.RealClock{},
		options: agent.Options{Namespace: naming.SystemNamespace, Log: logr.Discard()}}
	_, err := h.read()
	h.setProblem(err)
	if state, reason, joined := h.status(); state != agent.BadInput || joined || !strings.Contains(reason, "secret agents/edge of the host") {
		t.Errorf("before the first kubeconfig: %s %s", state, reason)
	}
	plane := testkube.Start(t, "member")
	running, err := agent.New(agent.Options{Member: plane.Config, Namespace: naming.SystemNamespace, Log: logr.Discard()})
	check(t, err)
	h.running = running
	if _, reason, _ := h.status(); !strings.Contains(reason, "the agent keeps its former kubeconfig: secret agents/edge") {
		t.Errorf("beside an agent: %s", reason)
	}
	h.setProblem(nil)
	if _, reason, _ := h.status(); strings.Contains(reason, "kubeconfig") {
		t.Errorf("with a better one: %s", reason)
	}
}

func TestAHostedAgentNeedsTheFileOfItsSecret(t *testing.T) {
	t.Setenv("KUBECONFIG", "/another")
	command := NewCommand()
	command.SetArgs([]string{"--namespace", "x", "--member-kubeconfig-secret", "agents/edge", "--health-probe-bind-address", "0"})
	if err := command.ExecuteContext(context.Background()); err == nil || !strings.Contains(err.Error(), "--kubeconfig is required") {
		t.Errorf("it starts: %v", err)
	}
}
