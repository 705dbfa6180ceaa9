package hubclient

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
)

func TestVerdict(t *testing.T) {
	resource := schema.GroupResource{Group: "g", Resource: "r"}
	for name, row := range map[string]struct {
		err  error
		want Result
	}{
		"no error":                       {nil, Accepted},
		"a refused connection":           {errors.New("dial tcp: connection refused"), Unreachable},
		"a time-out":                     {context.DeadlineExceeded, Unreachable},
		"an error of the server":         {apierrors.NewInternalError(errors.New("etcd")), Unreachable},
		"a server that is shutting down": {apierrors.NewServiceUnavailable("bye"), Unreachable},
		"a busy server":                  {apierrors.NewTooManyRequests("later", 1), Unreachable},
		"an unknown token":               {apierrors.NewUnauthorized("Unauthorized"), Unauthorized},
		"a wrapped one":                  {fmt.Errorf("x: %w", apierrors.NewUnauthorized("Unauthorized")), Unauthorized},
		"a missing right":                {apierrors.NewForbidden(resource, "n", errors.New("rbac")), Forbidden},
		"a missing object":               {apierrors.NewNotFound(resource, "n"), NotFound},
		"an invalid object":              {apierrors.NewBadRequest("no"), Invalid},
		"a 404 of a web server":          {apierrors.NewGenericServerResponse(404, "get", resource, "n", "<html>", 0, true), Unreachable},
		"a 401 of a proxy":               {apierrors.NewGenericServerResponse(401, "get", resource, "n", "<html>", 0, true), Unreachable},
		"a 403 of a proxy":               {apierrors.NewGenericServerResponse(403, "get", resource, "n", "<html>", 0, true), Unreachable},
	} {
		if got := Classify(row.err); got != row.want {
			t.Errorf("%s: got %s, want %s", name, got, row.want)
		}
	}
}

func TestRefusalCountsOnlyWhenItPersists(t *testing.T) {
	resource := schema.GroupResource{Group: "g", Resource: "r"}
	unauthorized := apierrors.NewUnauthorized("Unauthorized")
	forbidden := apierrors.NewForbidden(resource, "n", errors.New("rbac"))
	for name, row := range map[string]struct {
		answer  func(elapsed time.Duration) error
		want    Result
		atLeast time.Duration
		atMost  time.Duration
	}{
		"success counts at once": {
			answer: func(time.Duration) error { return nil }, want: Accepted,
		},
		"silence counts at once": {
			answer: func(time.Duration) error { return errors.New("connection refused") }, want: Unreachable,
		},
		"a right that comes late is success": {
			answer: func(e time.Duration) error {
				if e < 3*time.Second {
					return forbidden
				}
				return nil
			}, want: Accepted, atLeast: 3 * time.Second, atMost: 5 * time.Second,
		},
		"an unknown token counts after seconds": {
			answer: func(time.Duration) error { return unauthorized }, want: Unauthorized, atLeast: 2 * time.Second, atMost: 4 * time.Second,
		},
		"a missing right counts after a quarter of a minute": {
			answer: func(time.Duration) error { return forbidden }, want: Forbidden, atLeast: 15 * time.Second, atMost: 17 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				got, err := Persist(t.Context(), clock.RealClock{}, func(context.Context) error { return row.answer(time.Since(start)) },
					func(error) {})
				if took := time.Since(start); got != row.want || (err == nil) != (row.want == Accepted) || took < row.atLeast || took > row.atMost {
					t.Errorf("got %s, %v after %s", got, err, took)
				}
			})
		})
	}
}

// fakeHub is a TLS server that answers every request alike and remembers it.
type fakeHub struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string
}

func newFakeHub(t *testing.T, code int, body string) *fakeHub {
	t.Helper()
	h := &fakeHub{}
	h.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		h.requests = append(h.requests, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
		h.mu.Unlock()
		if location, ok := strings.CutPrefix(body, "-> "); ok {
			http.Redirect(w, r, location, code)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Date", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}))
	h.Config.ErrorLog = log.New(io.Discard, "", 0)
	h.StartTLS()
	t.Cleanup(h.Close)
	return h
}

func (h *fakeHub) session(t *testing.T) *Session {
	t.Helper()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw})
	session, err := NewSession(Credential{
		Server: h.URL, CA: ca, Token: "t0ken", MemberNamespace: "m", Workspace: "clusters", Cluster: "c",
	}, Trust{Mode: TLSStrict, Settings: settings}, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return session
}

var settings = Settings{URL: "apiServerURL", SetCA: "set apiServerCA to the CA of the hub"}

const report = `{"apiVersion":"cluster.kubernetes-fleet.io/v1beta1",` +
	`"kind":"InternalMemberCluster","metadata":{"name":"c"},"spec":{"state":"Join","heartbeatPeriodSeconds":7}}`

func TestSessionShowsItsTokenAndTheNextOneAndLearnsTheClock(t *testing.T) {
	hub := newFakeHub(t, 200, report)
	session := hub.session(t)
	for _, token := range []string{"t0ken", "t1ken"} {
		session.SetToken(token)
		if result, err := session.Verify(t.Context(), func(error) {}); result != Accepted {
			t.Fatalf("got %s, %v", result, err)
		}
	}
	const path = "GET /apis/cluster.kubernetes-fleet.io/v1beta1/namespaces/m/internalmemberclusters/c Bearer "
	if diff := cmp.Diff([]string{path + "t0ken", path + "t1ken"}, hub.requests); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if session.Report.Spec.HeartbeatPeriodSeconds != 7 {
		t.Errorf("report: %+v", session.Report.Spec)
	}
	if ahead := time.Until(session.Now()); ahead < 59*time.Minute || ahead > 61*time.Minute {
		t.Errorf("the hub's clock is thought to be %s ahead, want 1h", ahead)
	}
}

func TestTokenDoesNotFollowARedirectToAnotherHost(t *testing.T) {
	other := newFakeHub(t, 200, report)
	hub := newFakeHub(t, 307, "-> "+other.URL+"/x")
	session := hub.session(t)
	// Both servers have the same certificate, so only the token's guard is in the way.
	_, err := session.Verify(t.Context(), func(error) {})
	if len(other.requests) != 1 || strings.Contains(other.requests[0], "t0ken") {
		t.Errorf("the other host got %q (%v)", other.requests, err)
	}
}

func status(t *testing.T, err *apierrors.StatusError) string {
	t.Helper()
	s := err.Status()
	s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	body, failed := json.Marshal(s)
	if failed != nil {
		t.Fatal(failed)
	}
	return string(body)
}

func TestExplain(t *testing.T) {
	resource := schema.GroupResource{Group: "fleet.cattle.io", Resource: "clusterregistrations"}
	for name, row := range map[string]struct {
		code int
		body string
		want string
	}{
		"what the hub says is quoted": {403, status(t, apierrors.NewForbidden(resource, "c", errors.New("no role"))),
			`answers: clusterregistrations.fleet.cattle.io "c" is forbidden: no role`},
		"a web server is no hub":        {404, "<html>", "does not serve Muster's API (status 404): check apiServerURL"},
		"a login page is no hub either": {200, "<html>", "does not answer as a Kubernetes API server does"},
	} {
		t.Run(name, func(t *testing.T) {
			hub := newFakeHub(t, row.code, row.body)
			session := hub.session(t)
			_, err := session.Beat(t.Context(), "pod", time.Now(), Lease{})
			if got := session.Explain(err); !strings.Contains(got, row.want) || !strings.Contains(got, hub.URL) || strings.Contains(got, "t0ken") {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

func TestPlainHTTPServerIsNamed(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	url := strings.Replace(server.URL, "http://", "https://", 1)
	hub, err := Dial(Target{Server: url, Trust: Trust{Settings: settings}}, "t", clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	member, err := hub.Member("m", "c")
	if err != nil {
		t.Fatal(err)
	}
	_, err = member.Beat(t.Context(), "pod", time.Now(), Lease{})
	if got := hub.Explain(err); !strings.Contains(got, "does not speak TLS: check apiServerURL") {
		t.Errorf("got %q (%v)", got, err)
	}
}

func TestProxyOfTheEnvironmentIsUsedAndNoProxyHonoured(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.Method+" "+r.Host)
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer proxy.Close()
	t.Setenv("HTTPS_PROXY", proxy.URL)
	t.Setenv("NO_PROXY", ".invalid")
	for _, server := range []string{"https://hub.example:6443", "https://hub.invalid"} {
		hub, err := Dial(Target{Server: server}, "t", clock.RealClock{})
		if err != nil {
			t.Fatal(err)
		}
		member, err := hub.Member("m", "c")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := member.Beat(t.Context(), "pod", time.Now(), Lease{}); Classify(err) != Unreachable {
			t.Errorf("%s: got %v", server, err)
		}
	}
	if diff := cmp.Diff([]string{"CONNECT hub.example:6443"}, asked); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
