package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/testkube"
)

func TestADashboardIsReadyWhenEachKindWasAnswered(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: bundles}, "", errors.New("no rights"))
	notServed := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "Bundle"}, SearchedVersions: []string{"v1"}}
	for name, c := range map[string]struct {
		of     func(r *fleetCache)
		status int
		says   string
	}{
		"nothing was answered":     {func(*fleetCache) {}, http.StatusServiceUnavailable, "bundles have not been read yet"},
		"the objects were listed":  {func(r *fleetCache) { r.replace(bundles, nil) }, http.StatusOK, "ok"},
		"the kind is not served":   {func(r *fleetCache) { r.fail(bundles, notServed) }, http.StatusOK, "ok"},
		"the account has no right": {func(r *fleetCache) { r.fail(bundles, forbidden) }, http.StatusOK, "ok"},
		"the API server cannot be reached": {func(r *fleetCache) { r.fail(bundles, errors.New("refused")) }, http.StatusServiceUnavailable,
			"bundles have not been read yet"},
		"it cannot be reached after it was listed": {func(r *fleetCache) { r.replace(bundles, nil); r.fail(bundles, errors.New("refused")) },
			http.StatusOK, "ok"},
		"the account has no right to anything": {func(r *fleetCache) {
			r.listed = map[string]bool{}
			for resource := range kinds {
				r.fail(resource, forbidden)
			}
		}, http.StatusServiceUnavailable, "the dashboard can list no kinds"},
	} {
		s := &Server{cache: newFleetCache()}
		for resource := range kinds {
			if resource != bundles {
				s.cache.replace(resource, nil)
			}
		}
		c.of(s.cache)
		answered := httptest.NewRecorder()
		s.ready(answered, nil)
		if answered.Code != c.status || !strings.Contains(answered.Body.String(), c.says) {
			t.Errorf("%s: %d %s", name, answered.Code, answered.Body)
		}
	}
}

// TestWhatTheAccountOfTheDashboardIsToldIsToldToNoVisitor has the account lack the right to most
// kinds, as one of an older chart does.
func TestWhatTheAccountOfTheDashboardIsToldIsToldToNoVisitor(t *testing.T) {
	r := newRig(t)
	workspace := r.workspace("half")
	r.cluster(workspace, "web", "", "", nil)
	admin, tenant := r.Account(t, "dashboard-admin", "cluster-admin"), r.tenant("half-tenant", workspace, reads(clusters))
	const account = "dashboard-of-an-older-chart"
	token := r.Account(t, account, "")
	r.check(client.IgnoreAlreadyExists(r.Create(t.Context(),
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: account}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{clusters}, Verbs: []string{"list", "watch"}}}})))
	r.check(client.IgnoreAlreadyExists(r.Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: account},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: account},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceDefault, Name: account}}})))
	config := rest.AnonymousClientConfig(r.Config)
	config.BearerToken = token
	s, err := NewShared(t.Context(), Options{Config: config})
	r.check(err)
	address := r.serveUnread(s)
	testkube.Eventually(t, "it is ready", func() error {
		if got := r.ask(http.MethodGet, address+"/readyz", "", ""); got.status != http.StatusOK {
			return fmt.Errorf("%d %s", got.status, got.text)
		}
		return nil
	})
	for who, token := range map[string]string{"an admin": admin, "a tenant": tenant} {
		for _, path := range []string{"/", "/deliveries", "/registration", "/members/half/web"} {
			got := r.ask(http.MethodGet, address+path, token, "")
			if got.status != http.StatusOK || strings.Contains(got.text, account) {
				t.Errorf("%s sees in %s: %d\n%s", who, path, got.status, got.text)
			}
			if path == "/deliveries" && !strings.Contains(got.text, "the account of the dashboard may not list bundles") {
				t.Errorf("%s is not told in %s what is missing:\n%s", who, path, got.text)
			}
		}
	}
	owned, err := NewOwned(t.Context(), Options{Config: config})
	r.check(err)
	own := r.serveUnread(owned)
	cookie, _, _ := strings.Cut(r.ask(http.MethodGet, own+owned.Entrance(), "", "").header.Get("Set-Cookie"), ";")
	testkube.Eventually(t, "the owner is told all of it", func() error {
		if got := r.ask(http.MethodGet, own+"/deliveries", "", "", "Cookie", cookie); !strings.Contains(got.text, "default:"+account) {
			return fmt.Errorf("%d %s", got.status, got.text)
		}
		return nil
	})
}
