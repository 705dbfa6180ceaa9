package dashboard

import (
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/muster-fleet/muster/internal/testkube"
)

func TestViewsAreCountedByAFewNames(t *testing.T) {
	for pattern, want := range map[string]string{
		"GET /{$}": "fleet", "GET /members/{namespace}/{name}": "members", "POST /requests/{namespace}/{name}": "requests",
		"GET /deliveries": "deliveries", "GET /live": "live",
		"POST /sign-in": "sign-in", "GET /assets/": "", "GET /healthz": "", "": "none",
	} {
		if got := viewOf(pattern); got != want {
			t.Errorf("%s is counted as %q, want %q", pattern, got, want)
		}
	}
}

func TestTheDashboardCountsPagesAndStreamsAndTellsUnknownVisitorsNothing(t *testing.T) {
	s, all := remembered()
	s.authenticator, s.ctx = newKeyAuthenticator(all), t.Context()
	pagesAnswered.Reset()
	server, scraped := httptest.NewServer(s.Handler()), httptest.NewServer(s.metrics())
	t.Cleanup(server.Close)
	t.Cleanup(scraped.Close)
	get := func(address string, known bool) *http.Response {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		if known {
			key := s.authenticator.(*keyAuthenticator).key
			request.AddCookie(&http.Cookie{Name: ownersCookie(&http.Request{Host: request.URL.Host}), Value: key})
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		return response
	}
	text := func(address string) string {
		t.Helper()
		response := get(address, true)
		defer response.Body.Close()
		all, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(all)
	}
	text(server.URL + "/")
	text(server.URL + "/deliveries?selector==")
	text(server.URL + "/deliveries?name=web")
	get(server.URL+"/deliveries", false).Body.Close()
	for range 2 { // each path is another one, and they are counted as one
		text(server.URL + "/nothing-" + rand.Text())
	}
	stream := get(server.URL+"/live?page=/", true)
	defer stream.Body.Close()
	want := []string{`muster_dashboard_pages_total{status="200",view="fleet"} 1`,
		`muster_dashboard_pages_total{status="400",view="deliveries"} 1`, `muster_dashboard_pages_total{status="200",view="deliveries"} 1`,
		`muster_dashboard_pages_total{status="401",view="deliveries"} 1`, `muster_dashboard_pages_total{status="404",view="none"} 2`,
		"muster_dashboard_streams 1", "muster_dashboard_visitors 1",
		`muster_dashboard_page_duration_seconds_count{view="deliveries"}`, "process_resident_memory_bytes", "go_goroutines"}
	testkube.Eventually(t, "all are counted", func() error {
		said := text(scraped.URL + "/metrics")
		for _, line := range want {
			if !strings.Contains(said, line) {
				return fmt.Errorf("there is no %s in\n%s", line, said)
			}
		}
		return nil
	})
	for known, want := range map[bool]int{true: http.StatusNotFound, false: http.StatusUnauthorized} {
		response := get(server.URL+"/metrics", known)
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("where the pages are, metrics are answered by %d", response.StatusCode)
		}
	}
}

func TestMetricsHaveAnAddressOfTheirOwnOrNone(t *testing.T) {
	s, all := remembered()
	s.authenticator, s.ctx = newKeyAuthenticator(all), t.Context()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if err := s.serveMetrics(t.Context(), taken.Addr().String()); err == nil || !strings.Contains(err.Error(), "--metrics-bind-address") {
		t.Errorf("an address that is taken: %v", err)
	}
	if err := s.serveMetrics(t.Context(), off); err != nil {
		t.Error(err)
	}
	if err := s.serveMetrics(t.Context(), "127.0.0.1:0"); err != nil {
		t.Error(err)
	}
}
