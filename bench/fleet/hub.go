package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/internal/hub/members/liveness"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// hub is a process of the hub with the rights of its chart.
type hub struct {
	*testkube.Program
	pod     string
	metrics string
	probe   string

	mu sync.Mutex
	// done is set if the hub must not be started again.
	done bool
}

// kubeconfig writes the kubeconfig of the hub's own account.
func kubeconfig(t testing.TB, cluster testkube.Cluster) string {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: naming.SystemNamespace, Name: "fleet-controller"}}
	token, err := kube.RequestToken(context.Background(), cluster.Client(t).SubResource("token"), account, 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "hub.kubeconfig")
	if err := os.WriteFile(path, cluster.Kubeconfig(t, token), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func startHub(t testing.TB, kubeconfig, pod string, flags []string) *hub {
	h := &hub{pod: pod, metrics: freePort(t), probe: freePort(t)}
	h.run(t, kubeconfig, flags)
	return h
}

// run starts the hub on the cluster of a kubeconfig.
func (h *hub) run(t testing.TB, kubeconfig string, flags []string) {
	arguments := append([]string{"--kubeconfig", kubeconfig, "--namespace", naming.SystemNamespace,
		"--metrics-bind-address", h.metrics, "--health-probe-bind-address", h.probe}, flags...)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Program, h.done = testkube.RunWith(t, "muster-hub", []string{"POD_NAME=" + h.pod, "POD_UID=" + h.pod}, arguments...), false
}

// supervise restarts a hub that ended by itself, with a growing pause, as a kubelet does.
func (r *run) supervise(h *hub) {
	pause := time.Second
	for ; ; time.Sleep(100 * time.Millisecond) {
		h.mu.Lock()
		if h.done {
			h.mu.Unlock()
			return
		}
		if h.Ended() {
			r.ends.Add(1)
			r.note("a hub ended by itself during %s and is started again; its last words: %s", r.phase, lastLine(h.Log()))
			time.Sleep(pause)
			pause = min(2*pause, 10*time.Second)
			h.Start()
		}
		h.mu.Unlock()
	}
}

// kill kills the hub, for good or to start it again at once.
func (h *hub) kill(again bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Kill()
	if h.done = !again; again {
		h.Start()
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

func freePort(t testing.TB) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return address
}

// scrape reads the metrics of the hub.
func (h *hub) scrape() (samples, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+h.metrics+"/metrics", http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept-Encoding", "identity") // compressing the answer would cost the hub a third of a core
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	read, err := readSamples(response.Body)
	return read, errors.Join(err, response.Body.Close())
}

// leads reports whether the hub is the leading replica.
func (s samples) leads() bool { return s.sum("leader_election_master_status") == 1 }

// writes returns the number of write requests of the hub so far. It omits PUT requests: only the
// election uses them, apart from the rare writes of a Bundle.
func (s samples) writes() float64 {
	return s.sum("rest_client_requests_total", `method="POST"`) + s.sum("rest_client_requests_total", `method="PATCH"`) +
		s.sum("rest_client_requests_total", `method="DELETE"`)
}

func (s samples) reads() float64 { return s.sum("rest_client_requests_total", `method="GET"`) }

// queued returns the number of waiting requests in all queues of the hub.
func (s samples) queued() float64 { return s.sum("workqueue_depth") }

func (s samples) members(state string) int {
	return int(s.sum("muster_hub_members", `state="`+state+`"`))
}

// leader returns the leading replica, and its metrics.
func (r *run) leader() (*hub, samples, error) {
	var failed error
	for _, h := range r.hubs {
		s, err := h.scrape()
		if err == nil && s.leads() {
			return h, s, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, nil, fmt.Errorf("no replica leads: %w", failed)
}

// standby returns a figure of the waiting replica; 0 if there is none.
func (r *run) standby(metric string) float64 {
	for _, h := range r.hubs {
		if s, err := h.scrape(); err == nil && !s.leads() {
			return s.sum(metric)
		}
	}
	return 0
}

// settled waits until the leader's queues are empty, and the hub has written little for a while.
// The limit is twice the usual writes that keep the displayed heartbeats fresh. settled returns the
// beginning of that while.
func (r *run) settled() time.Time {
	always := 2 * quiet.Seconds() * float64(len(r.members)) / liveness.RefreshOf(len(r.members)).Seconds()
	last, since := -1.0, time.Now()
	for begun := time.Now(); ; time.Sleep(250 * time.Millisecond) {
		_, s, err := r.leader()
		if err != nil || s.queued() > 0 || last < 0 || s.writes() < last || s.writes()-last > always {
			since = time.Now()
			if err == nil {
				last = s.writes()
			}
		}
		if time.Since(since) >= quiet {
			return since
		}
		if time.Since(begun) > r.patience {
			r.note("the hub did not settle within %s", r.patience)
			return since
		}
	}
}

// apiServer reads the metrics of the hub's API server.
func (r *run) apiServer() samples {
	text, err := r.admin.Get().AbsPath("/metrics").DoRaw(r.ctx)
	if err != nil {
		r.t.Fatalf("reading the metrics of the API server: %v", err)
	}
	all, err := readSamples(strings.NewReader(string(text)))
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

// requests returns the requests to the API server by verb and resource, without watches.
func (s samples) requests() map[string]float64 {
	return s.by("apiserver_request_total", func(label func(string) string) string {
		if verb := label("verb"); verb != "WATCH" && verb != "CONNECT" {
			return strings.Join([]string{verb, label("resource"), label("subresource"), "→", label("code")}, " ")
		}
		return ""
	})
}

// policies returns the mean time of the admission policies per write, in milliseconds.
func policies(before, after samples) float64 {
	const name, of = "apiserver_admission_controller_admission_duration_seconds_", `name="ValidatingAdmissionPolicy"`
	count := after.sum(name+"count", of) - before.sum(name+"count", of)
	return 1000 * (after.sum(name+"sum", of) - before.sum(name+"sum", of)) / max(count, 1)
}
