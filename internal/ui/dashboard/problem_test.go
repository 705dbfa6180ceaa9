package dashboard

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAMissingRightIsNamedWithTheCommandsThatGrantIt(t *testing.T) {
	forbidden := func(text string) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: "fleet.cattle.io", Resource: "clusters"}, "far", errors.New(text))
	}
	got := missingOf(forbidden(`User "oidc:ann lee" cannot get resource "clusters" in API group "fleet.cattle.io" in the namespace "others"`))
	if got == nil {
		t.Fatal("the message is not understood")
	}
	want := []string{"kubectl -n others create role dashboard-visitor --verb get --resource clusters.fleet.cattle.io",
		"kubectl -n others create rolebinding dashboard-visitor --role dashboard-visitor --user 'oidc:ann lee'"}
	if diff := cmp.Diff(want, got.Commands()); diff != "" {
		t.Error(diff)
	}
	got = missingOf(forbidden(`User "ann" cannot list resource "nodes" in API group "" at the cluster scope`))
	want = []string{"kubectl create clusterrole dashboard-visitor --verb list --resource nodes",
		"kubectl create clusterrolebinding dashboard-visitor --clusterrole dashboard-visitor --user ann"}
	if diff := cmp.Diff(want, got.Commands()); diff != "" {
		t.Error(diff)
	}
	for _, other := range []error{forbidden("an admission policy refuses it"),
		errors.New(`User "ann" cannot get resource "clusters" in API group ""`)} {
		if got := missingOf(other); got != nil {
			t.Errorf("%v is understood as %v", other, got)
		}
	}
}

func TestErrorsAreWholePagesAndKeepTheForm(t *testing.T) {
	s, all := remembered()
	s.authenticator, s.ctx = newKeyAuthenticator(all), t.Context()
	ask := func(path string, known bool) *httptest.ResponseRecorder {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		if known {
			request.AddCookie(&http.Cookie{Name: ownersCookie(request), Value: s.authenticator.(*keyAuthenticator).key})
		}
		recorder := httptest.NewRecorder()
		s.Handler().ServeHTTP(recorder, request)
		return recorder
	}
	for _, c := range []struct {
		path   string
		known  bool
		status int
		shows  string
	}{
		{"/", false, http.StatusUnauthorized, "This page needs a key."},
		{"/nope", true, http.StatusNotFound, "the dashboard has no page at this address"},
		{"/?selector=env%3D%3D%3D&name=web", true, http.StatusBadRequest, `name="selector" value="env==="`},
		{"/?selector=env%3D%3D%3D&name=web", true, http.StatusBadRequest, `name="name" value="web"`},
		{"/deliveries?selector=%21%21", true, http.StatusBadRequest, `id="problem"`},
		{"/registration?selector=%21%21", true, http.StatusBadRequest, `aria-invalid="true"`},
	} {
		got := ask(c.path, c.known)
		if text := got.Body.String(); got.Code != c.status || !strings.Contains(text, c.shows) || !strings.Contains(text, `<html lang="en">`) ||
			!strings.Contains(text, "/assets/style.css") || strings.Contains(text, "data-live") {
			t.Errorf("%s: %d\n%s", c.path, got.Code, text)
		}
	}
}
