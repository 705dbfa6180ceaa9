package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

func TestMain(m *testing.M) { os.Exit(testkube.Main(m)) }

// rig is a control plane with a hub process and a workspace.
type rig struct {
	client.Client
	b         *testing.B
	cluster   testkube.Cluster
	workspace string
	hub       *exec.Cmd
}

func newRig(b *testing.B) *rig {
	b.Helper()
	cluster := testkube.Start(b, strings.ToLower(b.Name())) // its own, so that members of another benchmark are not lost in this one
	cluster.InstallHub(b)
	r := &rig{Client: cluster.Client(b), b: b, cluster: cluster}
	workspace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "clusters-"}}
	r.check(r.Create(context.Background(), workspace))
	r.workspace = workspace.Name
	r.hub = r.process("muster-hub", "--kubeconfig", filepath.Join(cluster.Dir, "kubeconfig"), "--namespace", naming.SystemNamespace,
		"--metrics-bind-address", "0", "--health-probe-bind-address", "0")
	b.Cleanup(func() { r.end(r.hub) })
	return r
}

func (r *rig) check(err error) {
	r.b.Helper()
	if err != nil {
		r.b.Fatal(err)
	}
}

// process starts a program of this repository.
func (r *rig) process(program string, args ...string) *exec.Cmd {
	r.b.Helper()
	return r.run(exec.Command(testkube.Build(r.b, program), args...))
}

func (r *rig) run(command *exec.Cmd) *exec.Cmd {
	r.b.Helper()
	r.check(command.Start())
	return command
}

func (r *rig) end(command *exec.Cmd) {
	_ = command.Process.Signal(syscall.SIGTERM) // it may have ended
	_ = command.Wait()                          // and its exit code is of no interest
}

// rss is the resident memory of a process in MiB.
func (r *rig) rss(command *exec.Cmd) float64 {
	r.b.Helper()
	return r.memory(command, "VmRSS:")
}

// memory is a line of the status of a process in MiB.
func (r *rig) memory(command *exec.Cmd, field string) float64 {
	r.b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", command.Process.Pid))
	r.check(err)
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, field); ok {
			kib, err := strconv.ParseFloat(strings.Fields(value)[0], 64)
			r.check(err)
			return kib / 1024
		}
	}
	r.b.Fatalf("no %s", field)
	return 0
}

// token creates a registration token and returns its values, and how long they took.
func (r *rig) token(name string) (map[string]string, time.Duration) {
	r.b.Helper()
	token := &fleet.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.workspace}}
	token.Spec.TTL = &metav1.Duration{Duration: 240 * time.Hour}
	begun := time.Now()
	r.check(r.Create(context.Background(), token))
	var secret corev1.Secret
	for r.Get(context.Background(), types.NamespacedName{Namespace: r.workspace, Name: name}, &secret) != nil {
		time.Sleep(2 * time.Millisecond)
	}
	took := time.Since(begun)
	values := map[string]string{}
	r.check(yaml.Unmarshal(secret.Data["values"], &values))
	return values, took
}

// as returns a client that has nothing but a bearer token.
func (r *rig) as(bearer string) client.WithWatch {
	r.b.Helper()
	config := rest.AnonymousClientConfig(r.cluster.Config)
	config.BearerToken, config.QPS = bearer, -1
	made, err := client.NewWithWatch(config, client.Options{Scheme: r.Scheme(), Mapper: r.RESTMapper()})
	r.check(err)
	return made
}

// ceiling is how many small objects the API server creates in a second with 32 writers.
func (r *rig) ceiling() float64 {
	r.b.Helper()
	const writers, each = 32, 100
	begun := time.Now()
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range each {
				o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.workspace, Name: fmt.Sprintf("ceiling-%d-%d", w, i)}, Data: map[string]string{"a": "b"}}
				if err := r.Create(context.Background(), o); err != nil {
					r.b.Error(err)
				}
			}
		})
	}
	group.Wait()
	rate := writers * each / time.Since(begun).Seconds()
	r.check(r.DeleteAllOf(context.Background(), &corev1.ConfigMap{}, client.InNamespace(r.workspace)))
	return rate
}

// audit counts the successful and failed writes in the audit log from a mark on, Leases and reviews aside.
type audit struct {
	path string
	from int64
}

func (r *rig) audit() audit {
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
func (r *rig) settle() {
	r.b.Helper()
	for {
		before, _ := r.audit().from, 0
		time.Sleep(2 * time.Second)
		if mark := r.audit(); mark.from-before < 20_000 { // what an idle control plane logs of its own
			return
		}
	}
}

func percentile(sorted []time.Duration, p float64) time.Duration {
	return sorted[min(int(float64(len(sorted))*p), len(sorted)-1)]
}

// cpu is the processor time in seconds that each program of the rig has used: the hub, the components of the control plane, and
// the benchmark itself, which plays the agents.
func (r *rig) cpu() map[string]float64 {
	r.b.Helper()
	used := map[string]float64{}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	r.check(err)
	for _, path := range lines {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		words := strings.Split(string(text), "\x00")
		name := filepath.Base(words[0])
		switch {
		case strings.Contains(string(text), r.cluster.Dir) && len(words) > 2 && words[1] == "component":
			name = words[2]
		case filepath.Dir(path) != fmt.Sprintf("/proc/%d", r.hub.Process.Pid) && filepath.Dir(path) != fmt.Sprintf("/proc/%d", os.Getpid()):
			continue
		}
		stat, err := os.ReadFile(filepath.Join(filepath.Dir(path), "stat"))
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		for _, ticks := range fields[11:13] { // utime and stime, in hundredths
			n, err := strconv.ParseFloat(ticks, 64)
			r.check(err)
			used[name] += n / 100
		}
	}
	return used
}
