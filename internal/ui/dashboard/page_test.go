package dashboard

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPagesAreCompressedIfTheBrowserTakesThat compares what a browser gets for each
// Accept-Encoding.
func TestPagesAreCompressedIfTheBrowserTakesThat(t *testing.T) {
	long := page{Title: "Not Found", Body: shownProblem{Text: strings.Repeat("nothing is here ", 500)}}
	answer := func(accept string) *httptest.ResponseRecorder {
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		if accept != "" {
			request.Header.Set("Accept-Encoding", accept)
		}
		recorder := httptest.NewRecorder()
		render(recorder, request, http.StatusNotFound, "problem", long)
		return recorder
	}
	plain := answer("").Body.String()
	for accept, want := range map[string]string{
		"": "", "identity": "", "gzip": "gzip", "gzip, deflate, br": "gzip", "br;q=1, gzip;q=0.5": "gzip",
		"gzip;q=0": "", "x-gzip": "",
	} {
		got := answer(accept)
		if encoding := got.Header().Get("Content-Encoding"); encoding != want {
			t.Errorf("Accept-Encoding %q is answered with the encoding %q, want %q", accept, encoding, want)
			continue
		}
		body := io.Reader(got.Body)
		if want == "gzip" {
			unpacked, err := gzip.NewReader(got.Body)
			if err != nil {
				t.Fatal(err)
			}
			body = unpacked
		}
		text, err := io.ReadAll(body)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(plain, string(text)); diff != "" {
			t.Errorf("Accept-Encoding %q gets another page: %s", accept, diff)
		}
		header := []any{got.Code, got.Header().Get("Vary"), got.Header().Get("Content-Type")}
		if diff := cmp.Diff([]any{404, "Accept-Encoding", "text/html; charset=utf-8"}, header); diff != "" {
			t.Errorf("Accept-Encoding %q: status, Vary and Content-Type: %s", accept, diff)
		}
	}
}
