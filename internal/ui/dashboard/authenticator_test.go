package dashboard

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/util/flowcontrol"
)

func TestATicketLetsInOnceAndDashboardsOfOneMachineKeepTheirVisitors(t *testing.T) {
	s, all := remembered()
	s.authenticator, s.ctx = newKeyAuthenticator(all), t.Context()
	ask := func(host, path, cookie string) answer {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		request.Host = host
		request.Header.Set("Cookie", cookie)
		recorder := httptest.NewRecorder()
		s.Handler().ServeHTTP(recorder, request)
		return answer{recorder.Code, recorder.Body.String(), recorder.Header()}
	}
	first := ask("127.0.0.1:8001", s.Ticket(), "")
	cookie, _, _ := strings.Cut(first.header.Get("Set-Cookie"), ";")
	if first.status != http.StatusSeeOther || !strings.HasPrefix(cookie, "muster-key-8001=") {
		t.Fatalf("the ticket: %d", first.status)
	}
	if again := ask("127.0.0.1:8001", s.Ticket(), ""); again.status != http.StatusUnauthorized {
		t.Errorf("the ticket again: %d", again.status)
	}
	if key := ask("127.0.0.1:8001", s.Entrance(), ""); key.status != http.StatusSeeOther {
		t.Errorf("the key, which was printed for the user: %d", key.status)
	}
	if page := ask("127.0.0.1:8001", "/", cookie+"; muster-key-8002=of-another"); page.status != http.StatusOK {
		t.Errorf("who has the cookie: %d", page.status)
	}
	if page := ask("127.0.0.1:8002", "/", cookie); page.status != http.StatusUnauthorized {
		t.Errorf("the cookie of another port: %d", page.status)
	}
}

func TestWhatAVisitorMaySendAndWatchIsBounded(t *testing.T) {
	s, all := remembered()
	s.authenticator, s.ctx = newKeyAuthenticator(all), t.Context()
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	ask := func(path string, body io.Reader) answer {
		t.Helper()
		method := http.MethodGet
		if body != nil {
			method = http.MethodPost
		}
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, body)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.AddCookie(&http.Cookie{Name: ownersCookie(&http.Request{Host: request.URL.Host}), Value: s.authenticator.(*keyAuthenticator).key})
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		return answer{status: response.StatusCode, header: response.Header}
	}
	if got := ask("/tokens", strings.NewReader("name="+strings.Repeat("x", mostSent))); got.status != http.StatusBadRequest {
		t.Errorf("a form that is too large: %d", got.status)
	}
	all.streams.Store(mostStreamsEach)
	if got := ask("/live?page=/", nil); got.status != http.StatusTooManyRequests {
		t.Errorf("one more stream: %d", got.status)
	}
	if n := all.streams.Load(); n != mostStreamsEach {
		t.Errorf("there are %d of %d streams after it", n, mostStreamsEach)
	}
	all.pace = flowcontrol.NewTokenBucketRateLimiter(0.001, 1)
	if got := ask("/", nil); got.status != http.StatusOK {
		t.Errorf("a page: %d", got.status)
	}
	if got := ask("/", nil); got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") == "" {
		t.Errorf("a page too much: %d", got.status)
	}
}

func TestAStreamSaysNothingWhenWhatChangesIsNotShown(t *testing.T) {
	s, all := remembered()
	s.authenticator, s.ctx = newKeyAuthenticator(all), t.Context()
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	q, err := queryOf(fleetPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.look(t.Context(), all, q)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/live?page=/&have="+f.digest(), nil)
	if err != nil {
		t.Fatal(err)
	}
	request.AddCookie(&http.Cookie{Name: ownersCookie(&http.Request{Host: request.URL.Host}), Value: s.authenticator.(*keyAuthenticator).key})
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	read := make(chan string, 10)
	go func() {
		for {
			text := make([]byte, 4096)
			n, err := response.Body.Read(text)
			if read <- string(text[:n]); err != nil {
				return
			}
		}
	}()
	if begun := <-read; begun != nothing {
		t.Errorf("it begins with %q", begun)
	}
	s.cache.replace(tokens, nil) // wakes no viewer of the fleet
	s.cache.drop(bundles, "fleet/gone")
	select {
	case text := <-read:
		t.Errorf("it says %q", text)
	case <-time.After(3 * gathered):
	}
}
