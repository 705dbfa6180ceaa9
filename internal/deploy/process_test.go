package deploy

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/agent/deployer"
	"github.com/muster-fleet/muster/internal/agent/remote"
	"github.com/muster-fleet/muster/internal/agent/trust"
)

// program is the deployer as the agent starts it.
type program struct {
	*exec.Cmd
	orders io.WriteCloser
	output *strings.Builder
	exited chan error
}

func (r *rig) program(binary string) *program {
	r.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "agent", Namespace: r.member}}
	token := &authenticationv1.TokenRequest{}
	r.check(r.kube.SubResource("token").Create(r.t.Context(), account, token))
	p := &program{
		Cmd:    exec.Command(binary, "--kubeconfig", filepath.Join(r.cluster.Dir, "kubeconfig"), "--namespace", r.agent),
		output: &strings.Builder{}, exited: make(chan error, 1),
	}
	p.Stderr = p.output
	var err error
	p.orders, err = p.StdinPipe()
	r.check(err)
	r.check(p.Start())
	go func() { p.exited <- p.Wait() }()
	r.t.Cleanup(func() { _ = p.Process.Kill() })
	r.check(deployer.Order{
		Hub: remote.Target{
			Server: r.cluster.Config.Host, CA: r.cluster.Config.CAData, Trust: trust.Policy{Mode: trust.Strict},
		},
		Token: token.Status.Token, Namespace: r.member, Name: r.report.Name, Member: string(r.report.UID),
		Kinds: []deployer.Kind{deployer.Bundles},
	}.Send(p.orders))
	return p
}

func TestProgramThatWasKilledInAnInstallationGoesOn(t *testing.T) {
	r := newRig(t)
	binary := filepath.Join(t.TempDir(), deployer.Program)
	if out, err := exec.Command("go", "build", "-o", binary, "../../cmd/muster-deployer").CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	hook := file("hook.yaml", `apiVersion: batch/v1
kind: Job
metadata:
  name: never
  annotations: {"helm.sh/hook": pre-install}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: a, image: nowhere.example.com/a}]}
`)
	first := r.program(binary)
	r.place("web", fleet.BundleDeploymentOptions{}, hook, configMap("web", "one"))
	r.eventually("the installation is under way", func() error {
		histories := &corev1.SecretList{}
		r.check(r.kube.List(t.Context(), histories, client.InNamespace(r.agent), client.MatchingLabels{"status": "pending-install"}))
		if len(histories.Items) == 0 {
			return errors.New("it is not")
		}
		return nil
	})
	r.check(first.Process.Signal(syscall.SIGKILL))
	<-first.exited
	r.place("web", fleet.BundleDeploymentOptions{}, configMap("web", "two"))
	second := r.program(binary)
	r.until("web", fleet.StateReady)
	if got, err := r.data("web"); err != nil || got != "two" {
		t.Errorf("the data is %q, %v", got, err)
	}
	r.check(second.orders.Close())
	select {
	case err := <-second.exited:
		if err != nil {
			t.Errorf("it ended with %v:\n%s", err, second.output)
		}
	case <-time.After(20 * time.Second):
		t.Errorf("it outlives its agent:\n%s", second.output)
	}
	if strings.Contains(second.output.String(), "eyJ") {
		t.Error("the log holds a token")
	}
	if t.Failed() {
		fmt.Println(second.output)
	}
}
