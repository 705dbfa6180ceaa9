package bundle

import (
	"errors"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery/protocol"
	"github.com/muster-fleet/muster/internal/testkube"
)

// program is the whole muster-deployer as the agent starts it, which is tested here, with the rig
// that has Bundles for it.
type program struct {
	*exec.Cmd
	orders io.WriteCloser
	// order is the last one.
	order  protocol.Order
	output *output
	exited chan error
}

// output is what it says, which may be read while it speaks.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// program starts a deployer. It ends at once without anything to deploy, so place something first.
func (r *rig) program(binary, server string, arguments ...string) *program {
	r.t.Helper()
	placed := &fleet.BundleDeploymentList{}
	if r.check(r.kube.List(r.t.Context(), placed, client.InNamespace(r.member))); len(placed.Items) == 0 {
		r.t.Fatal("the deployer would end, because nothing is placed")
	}
	p := &program{
		Cmd:    exec.Command(binary, "--kubeconfig", filepath.Join(r.cluster.Dir, "kubeconfig"), "--namespace", r.agent, "--lease-duration=18s"),
		output: &output{}, exited: make(chan error, 1),
	}
	p.Args = append(p.Args, arguments...)
	p.Stderr = p.output
	var err error
	p.orders, err = p.StdinPipe()
	r.check(err)
	r.check(p.Start())
	go func() { p.exited <- p.Wait() }()
	r.t.Cleanup(func() {
		_ = p.Process.Kill() // it may have ended by itself
		if r.t.Failed() {
			r.t.Logf("%s says:\n%s", binary, p.output)
		}
	})
	p.order = r.order(server)
	r.check(p.order.Send(p.orders))
	return p
}

// relay is another address of the API server, until it is closed.
func (r *rig) relay() (server string, shut func()) {
	r.t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(r.t.Context(), "tcp", "127.0.0.1:0")
	r.check(err)
	var mu sync.Mutex
	var open []net.Conn
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", strings.TrimPrefix(r.cluster.Config.Host, "https://"))
			if err != nil {
				_ = in.Close() // the client that dialed notices the close
				continue
			}
			mu.Lock()
			open = append(open, in, out)
			mu.Unlock()
			go func() { _, _ = io.Copy(in, out) }() // until either end is closed
			go func() { _, _ = io.Copy(out, in) }()
		}
	}()
	shut = func() {
		_ = listener.Close() // it may be closed already
		mu.Lock()
		defer mu.Unlock()
		for _, conn := range open {
			_ = conn.Close()
		}
	}
	r.t.Cleanup(shut)
	return "https://" + listener.Addr().String(), shut
}

func TestProgramGoesOnAtAnotherAddressOfTheHub(t *testing.T) {
	r := newRig(t)
	first, shutFirst := r.relay()
	second, _ := r.relay()
	r.place("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	// A machine that is busy for seconds loses a shorter lease, and the test does not start the
	// program again.
	p := r.program(testkube.Build(t, protocol.Program), first, "--lease-duration=45s")
	r.until("web", fleet.StateReady)
	p.order.Hub.Server = second
	r.check(p.order.Send(p.orders))
	r.eventually("it has moved", func() error {
		if !strings.Contains(p.output.String(), second) {
			return errors.New("it says nothing of it")
		}
		return nil
	})
	shutFirst()
	r.deploy("web", fleet.BundleDeploymentOptions{}, configMap("web", "two"))
	if got, err := r.data("web"); err != nil || got != "two" {
		t.Errorf("the data is %q, %v", got, err)
	}
	select {
	case err := <-p.exited:
		t.Errorf("it ended with %v", err)
	default:
	}
}

func TestProgramThatWasKilledInAnInstallationGoesOn(t *testing.T) {
	r := newRig(t)
	binary := testkube.Build(t, protocol.Program)
	r.place("web", fleet.BundleDeploymentOptions{}, hook, configMap("web", "one"))
	first := r.program(binary, r.cluster.Config.Host)
	r.eventually("the installation is under way", func() error {
		histories := &corev1.SecretList{}
		if err := r.kube.List(t.Context(),
			histories, client.InNamespace(r.target), client.MatchingLabels{"status": "pending-install"}); err != nil {
			return err
		}
		if len(histories.Items) == 0 {
			return errors.New("it is not")
		}
		return nil
	})
	r.check(first.Process.Signal(syscall.SIGKILL))
	<-first.exited
	r.place("web", fleet.BundleDeploymentOptions{}, configMap("web", "two"))
	second := r.program(binary, r.cluster.Config.Host)
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
}
