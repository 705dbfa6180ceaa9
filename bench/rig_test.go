package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// audit counts the successful and failed writes in the audit log from a mark on, Leases and reviews aside.
type audit struct {
	path string
	from int64
}

func (r *testRig) audit() audit {
	r.b.Helper()
	path := filepath.Join(r.cluster.Dir, "audit.log")
	info, err := os.Stat(path)
	r.check(err)
	return audit{path: path, from: info.Size()}
}

func (a audit) writes(b *testing.B) (count int, kinds map[string]int) {
	b.Helper()
	file, err := os.Open(a.path)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Seek(a.from, 0); err != nil {
		b.Fatal(err)
	}
	kinds = map[string]int{}
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return count, kinds
		}
		var event struct {
			Verb      string `json:"verb"`
			Stage     string `json:"stage"`
			ObjectRef struct {
				Resource    string `json:"resource"`
				Subresource string `json:"subresource"`
			} `json:"objectRef"`
		}
		if json.Unmarshal(bytes.TrimSpace(line), &event) != nil || event.Stage != "ResponseComplete" {
			continue
		}
		aside := []string{"leases", "tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews"}
		if !slices.Contains([]string{"create", "update", "patch", "delete"}, event.Verb) || slices.Contains(aside, event.ObjectRef.Resource) {
			continue
		}
		count++
		kinds[event.Verb+" "+event.ObjectRef.Resource+" "+event.ObjectRef.Subresource]++
	}
}

// settle waits until the API server has seen no write for a while.
func (r *testRig) settle() {
	r.b.Helper()
	for {
		before, _ := r.audit().from, 0
		time.Sleep(2 * time.Second)
		if mark := r.audit(); mark.from-before < 20_000 { // what an idle control plane logs of its own
			return
		}
	}
}

// cpu is the processor time in seconds that each program of the rig has used: the hub, the components of the control plane, and
// the benchmark itself, which plays the agents.
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
