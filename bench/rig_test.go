package bench

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/bench/rig"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

func TestMain(m *testing.M) { os.Exit(testkube.Main(m)) }

// testRig is a control plane with a hub process and a workspace.
type testRig struct {
	client.Client
	b         *testing.B
	cluster   testkube.Cluster
	workspace string
	hub       *exec.Cmd
}

func newRig(b *testing.B) *testRig {
	b.Helper()
	cluster := testkube.Start(b, strings.ToLower(b.Name())) // its own, so that members of another benchmark are not lost in this one
	cluster.InstallHub(b)
	r := &testRig{Client: cluster.Client(b), b: b, cluster: cluster}
	workspace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "clusters-"}}
	r.check(r.Create(context.Background(), workspace))
	r.workspace = workspace.Name
	r.hub = r.process("muster-hub", "--kubeconfig", filepath.Join(cluster.Dir, "kubeconfig"), "--namespace", naming.SystemNamespace,
		"--metrics-bind-address", "0", "--health-probe-bind-address", "0")
	b.Cleanup(func() { r.end(r.hub) })
	return r
}

func (r *testRig) check(err error) {
	r.b.Helper()
	if err != nil {
		r.b.Fatal(err)
	}
}

// process starts a program of this repository.
func (r *testRig) process(program string, args ...string) *exec.Cmd {
	r.b.Helper()
	return r.run(exec.Command(testkube.Build(r.b, program), args...))
}

func (r *testRig) run(command *exec.Cmd) *exec.Cmd {
	r.b.Helper()
	r.check(command.Start())
	return command
}

func (r *testRig) end(command *exec.Cmd) {
	_ = command.Process.Signal(syscall.SIGTERM) // it may have ended
	_ = command.Wait()                          // and its exit code is of no interest
}

// rss is the resident memory of a process in MiB.
func (r *testRig) rss(command *exec.Cmd) float64 {
	r.b.Helper()
	return r.memory(command, "VmRSS:")
}

// memory is a line of the status of a process in MiB.
func (r *testRig) memory(command *exec.Cmd, field string) float64 {
	r.b.Helper()
	mib, err := rig.Memory(command.Process.Pid, field)
	r.check(err)
	return mib
}

// token creates a registration token and returns its values, and how long they took.
func (r *testRig) token(name string) (map[string]string, time.Duration) {
	r.b.Helper()
	begun := time.Now()
	values, err := rig.Token(context.Background(), r.Client, r.workspace, name)
	r.check(err)
	return values, time.Since(begun)
}

// as returns a client that has nothing but a bearer token.
func (r *testRig) as(bearer string) client.WithWatch {
	r.b.Helper()
	config := rest.AnonymousClientConfig(r.cluster.Config)
	config.BearerToken, config.QPS = bearer, -1
	made, err := client.NewWithWatch(config, client.Options{Scheme: r.Scheme(), Mapper: r.RESTMapper()})
	r.check(err)
	return made
}

// ceiling is the raw-write ceiling.
func (r *testRig) ceiling() float64 {
	r.b.Helper()
	rate, err := rig.Ceiling(context.Background(), r.Client, r.workspace)
	r.check(err)
	return rate
}

// audit is a mark in the audit log.
type audit struct{ rig.Audit }

func (r *testRig) audit() audit {
	r.b.Helper()
	mark, err := rig.MarkAudit(r.cluster.Dir)
	r.check(err)
	return audit{mark}
}

// writes counts the successful and failed writes since the mark, Leases and reviews aside.
func (a audit) writes(b *testing.B) (count int, kinds map[string]int) {
	b.Helper()
	kinds, err := a.Writes()
	if err != nil {
		b.Fatal(err)
	}
	for _, of := range kinds {
		count += of
	}
	return count, kinds
}

// settle waits until the API server has seen no write for a while.
func (r *testRig) settle() {
	r.b.Helper()
	for {
		before := r.audit()
		time.Sleep(2 * time.Second)
		if r.audit().Since(before.Audit) < 20_000 { // what an idle control plane logs of its own
			return
		}
	}
}

// cpu is the processor time in seconds that each program of the rig has used: the hub, the
// components of the control plane, and the benchmark itself, which plays the agents.
func (r *testRig) cpu() map[string]float64 {
	r.b.Helper()
	usages, err := rig.Usages(r.cluster.Dir, r.hub.Process.Pid, os.Getpid())
	r.check(err)
	used := map[string]float64{}
	for name, usage := range usages {
		used[name] = usage.CPU
	}
	return used
}
