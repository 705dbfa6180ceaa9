package crash

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// The programs whose calls are numbered. restore is the command, and restored the hub after it.
const (
	hub      = "hub"
	agent    = "agent"
	deployer = "deployer"
	gitops   = "gitops"
	restore  = "restore"
	restored = "restored"
)

// point is one API call of a program in a scenario: the nth of those that do the same to the same
// resource. So it has the same name in each run, however the program's other calls are ordered.
type point struct {
	program, call string
	n             int
}

func (p point) String() string { return fmt.Sprintf("%s %s %d", p.program, p.call, p.n) }

// faults are what can happen at a point, by name. The answers come in place of the server, which
// does not see the call.
var faults = []string{"kill", "kill-after", "409", "429", "500", "503", "broken", "cut"}

// applies reports whether a fault makes sense at a point. No server answers a read with a conflict.
func applies(fault string, p point) bool {
	return fault != "409" || !strings.HasPrefix(p.call, http.MethodGet)
}

// wire is what all programs of the rig reach the control planes through. It numbers the calls of
// one scenario and disturbs some of them.
type wire struct {
	// restart kills a program and starts it again.
	restart func(program string)

	mu     sync.Mutex
	own    func(text string) bool
	counts map[string]int
	made   []point
	// ahead are the disturbances that have not happened yet.
	ahead   trial
	watches map[string]map[*http.Request]context.CancelFunc
}

// listen begins to number the calls that are not about other scenarios, and disturbs those of a
// trial.
func (w *wire) listen(own func(text string) bool, at trial) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.own, w.counts, w.made, w.ahead = own, map[string]int{}, nil, slices.Clone(at)
}

// end ends that, and returns the calls that were made and whether all of the trial were disturbed.
func (w *wire) end() (made []point, reached bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.own = nil
	return w.made, len(w.ahead) == 0
}

// number gives a call its name, and returns the fault that is to happen to it, if any.
func (w *wire) number(program, call, text string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.own == nil || !w.own(text) {
		return ""
	}
	w.counts[program+" "+call]++
	p := point{program, call, w.counts[program+" "+call]}
	w.made = append(w.made, p)
	i := slices.IndexFunc(w.ahead, func(d disturbance) bool { return d.point == p })
	if i < 0 {
		return ""
	}
	fault := w.ahead[i].fault
	w.ahead = slices.Delete(w.ahead, i, i+1)
	return fault
}

// watching remembers how to cut a watch until it has ended.
func (w *wire) watching(program string, r *http.Request, cut context.CancelFunc) (done func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watches[program] == nil {
		w.watches[program] = map[*http.Request]context.CancelFunc{}
	}
	w.watches[program][r] = cut
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.watches[program], r)
	}
}

func (w *wire) cutWatches(program string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, cut := range w.watches[program] {
		cut()
	}
}

// front is a way to a control plane through the wire, with a CA of its own. Who names the program
// that makes a request.
func (w *wire) front(t testing.TB, to testkube.Cluster, who func(*http.Request) string) testkube.Cluster {
	t.Helper()
	target, err := url.Parse(to.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(to.Config))
	if err != nil {
		t.Fatal(err)
	}
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: transport, FlushInterval: -1,
		ErrorLog: log.New(io.Discard, "", 0),
	}
	certificate, ca := testkube.NewCertificate(t)
	server := testkube.ServeTLS(t, func(answer http.ResponseWriter, r *http.Request) { w.serve(forward, who(r), answer, r) },
		func(s *httptest.Server) {
			s.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}
		})
	front := to.Behind(server)
	front.Config.CAData = []byte(ca)
	return front
}

func (w *wire) serve(forward http.Handler, program string, answer http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("watch") != "" {
		ctx, cut := context.WithCancel(r.Context())
		defer cut()
		defer w.watching(program, r, cut)()
		forward.ServeHTTP(answer, r.WithContext(ctx))
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the program is gone
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var fault string
	if call := callOf(r); call != "" {
		fault = w.number(program, call, r.URL.Path+string(body))
	}
	switch fault {
	case "":
		forward.ServeHTTP(answer, r)
	case "cut":
		w.cutWatches(program)
		forward.ServeHTTP(answer, r)
	case "kill":
		w.restart(program)
		panic(http.ErrAbortHandler)
	case "kill-after":
		forward.ServeHTTP(httptest.NewRecorder(), r)
		w.restart(program)
		panic(http.ErrAbortHandler)
	case "broken":
		forward.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	default:
		refuse(answer, fault)
	}
}

// refusals are the answers of an API server that does not do what it was asked.
var refusals = map[string]metav1.Status{
	"409": {Code: http.StatusConflict, Reason: metav1.StatusReasonConflict},
	"429": {Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests},
	"500": {Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError},
	"503": {Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable},
}

func refuse(answer http.ResponseWriter, fault string) {
	status := refusals[fault]
	status.TypeMeta, status.Status, status.Message = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, metav1.StatusFailure, "the rig says so"
	answer.Header().Set("Content-Type", "application/json")
	if fault == "429" {
		answer.Header().Set("Retry-After", "1")
	}
	answer.WriteHeader(int(status.Code))
	_ = json.NewEncoder(answer).Encode(status) // the program may be gone
}

// aside are calls without a number: how often they are made is a matter of time.
var aside = []string{"leases/" + naming.HeartbeatLease, "leases/" + naming.AgentLease, "leases/" + naming.MemberAgentLease, "events/"}

// resource finds namespace, resource, name and subresource of a path.
var resource = regexp.MustCompile(`^/(?:api/v1|apis/[^/]+/[^/]+)(?:/namespaces/[^/]+)?/([a-z]+)(?:/([^/]+))?(?:/([a-z]+))?$`)

// callOf names a call by its method, resource and subresource; "" if it is not numbered.
func callOf(r *http.Request) string {
	found := resource.FindStringSubmatch(r.URL.Path)
	// A list from the server's cache is the beginning of a watch.
	if found == nil || r.URL.Query().Get("resourceVersion") == "0" || slices.ContainsFunc(aside, func(path string) bool {
		return strings.HasPrefix(found[1]+"/"+found[2], path)
	}) {
		return ""
	}
	call := r.Method + " " + found[1]
	switch {
	case found[3] != "":
		call += "/" + found[3]
	case found[2] == "" && r.Method == http.MethodGet:
		call += "/" // a list
	}
	return call
}
