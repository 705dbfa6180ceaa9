package dashboard

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// badValues are values that no link of the dashboard has.
var badValues = []string{
	"9223372036854775807", "92233720368547759", "-1", "0", "1e9", "\x00", "\xff\xfe", "../../etc/passwd", "<script>alert(1)</script>",
	"'\"><img src=x onerror=alert(1)>", strings.Repeat("a", 5000), "=,=,!", "{{.}}", "%", "\r\nX-Injected: yes", "\u202egnp",
	"javascript:alert(1)",
}

// TestBadInputGetsAPageAndNothingElse sends bad values in each parameter of the pages without
// objects. No page fails, and no value becomes markup.
func TestBadInputGetsAPageAndNothingElse(t *testing.T) {
	s, all := remembered()
	s.authenticator, s.ctx = newKeyAuthenticator(all), t.Context()
	s.cache.put(clusters, &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "web", ResourceVersion: "1"}})
	for path, names := range map[string][]string{
		"/": {
			"name", "namespace", "selector", "state", "version", "kind", "provider", "view", "group", "label", "sort", "column", "page",
		},
		"/?view=wall":   {"name", "selector", "state", "group", "label", "page"},
		"/deliveries":   {"name", "namespace", "selector", "state", "page"},
		"/registration": {"name", "namespace", "selector", "state", "page"},
		"/find":         {"q"},
		"/bulk":         {"action", "member", "back", "labels"},
	} {
		for _, name := range names {
			for _, value := range badValues {
				address, err := url.Parse(path)
				if err != nil {
					t.Fatal(err)
				}
				query := address.Query()
				query.Set(name, value)
				address.RawQuery = query.Encode()
				checkBadInput(t, s, address.String())
			}
		}
	}
}

// checkBadInput gets an address.
func checkBadInput(t *testing.T, s *Server, address string) {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	request.AddCookie(&http.Cookie{Name: ownersCookie(request), Value: s.authenticator.(*keyAuthenticator).key})
	recorder := httptest.NewRecorder()
	defer func() {
		if problem := recover(); problem != nil {
			t.Errorf("%.100s: the handler panics: %v", address, problem)
		}
	}()
	s.Handler().ServeHTTP(recorder, request)
	text := recorder.Body.String()
	switch {
	case recorder.Code >= 500 || !strings.Contains(text, "<main>"):
		t.Errorf("%.100s: %d %.300s", address, recorder.Code, text)
	case !utf8.ValidString(text):
		t.Errorf("%.100s: the page is not UTF-8", address)
	case strings.Contains(text, "<script>alert") || strings.Contains(text, "<img src=x") || strings.Contains(text, `href="javascript:`):
		t.Errorf("%.100s: a value is markup of the page", address)
	case recorder.Header().Get("X-Injected") != "":
		t.Errorf("%.100s: a value is a header", address)
	}
}
