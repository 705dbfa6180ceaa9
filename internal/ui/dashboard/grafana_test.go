package dashboard

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

func TestOnlyAWebPageIsTheAddressOfGrafana(t *testing.T) {
	for address, valid := range map[string]bool{
		"": true, "https://grafana.example.com/d/muster": true, "http://10.0.0.1:3000": true,
		"javascript:alert(1)": false, "grafana.example.com": false, "https://": false, "ftp://grafana.example.com": false,
	} {
		if err := checkGrafana(address); (err == nil) != valid {
			t.Errorf("%q: %v", address, err)
		}
	}
	options := Options{Config: &rest.Config{Host: "https://127.0.0.1:1"}, Grafana: "javascript:alert(1)"}
	if _, err := NewOwned(t.Context(), options); err == nil {
		t.Error("a dashboard links to a script")
	}
}

func TestPagesLinkToGrafana(t *testing.T) {
	const link = `<a href="https://grafana.example.com/d/muster" rel="noopener noreferrer">Metrics</a>`
	for address, shown := range map[string]bool{"": false, "https://grafana.example.com/d/muster": true} {
		answer := httptest.NewRecorder()
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		render(answer, request, http.StatusOK, "components", page{Visitor: "ada", Grafana: address})
		if strings.Contains(answer.Body.String(), link) != shown {
			t.Errorf("with %q the page is\n%s", address, answer.Body)
		}
	}
}
