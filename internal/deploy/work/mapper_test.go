package work

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// asked are the paths that an API server was asked for.
type asked struct {
	mu    sync.Mutex
	paths []string
}

func (a *asked) observe(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			a.mu.Lock()
			a.paths = append(a.paths, request.URL.Path)
			a.mu.Unlock()
			return next.RoundTrip(request)
		})
	})
	return config
}

func (a *asked) matching(is func(path string) bool) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(a.paths), func(path string) bool { return !is(path) })
}

// discovery is what was asked of which kinds there are: of groups, or of the version of one.
func (a *asked) discovery() []string {
	return a.matching(func(path string) bool {
		return path == "/api" || path == "/api/v1" || strings.HasPrefix(path, "/apis") && strings.Count(path, "/") <= 3
	})
}

func TestOwnKindsAreMappedWithTheirLists(t *testing.T) {
	for kind, want := range map[string]meta.RESTScopeName{
		"Work": meta.RESTScopeNameNamespace, "WorkList": meta.RESTScopeNameNamespace,
		"AppliedWork": meta.RESTScopeNameRoot, "AppliedWorkList": meta.RESTScopeNameRoot,
	} {
		mapping, err := ownKinds().RESTMapping(placement.GroupVersion.WithKind(kind).GroupKind(), placement.GroupVersion.Version)
		if err != nil || mapping.Scope.Name() != want {
			t.Errorf("%s: %+v, %v", kind, mapping, err)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func TestKindsAreDiscoveredOnlyForManifests(t *testing.T) {
	r := newRig(t)
	r.halt()
	var hub, member asked
	r.hub, r.member = hub.observe(r.hub), member.observe(r.member)
	r.start()
	r.eventually("the AppliedWorks are listed", func() error {
		if len(member.matching(func(path string) bool { return strings.HasSuffix(path, "/appliedworks") })) == 0 {
			return errors.New("they are not")
		}
		return nil
	})
	if got := member.discovery(); !slices.Equal(got, []string{"/apis/placement.kubernetes-fleet.io/v1beta1"}) {
		t.Errorf("without Works this cluster was asked for %v", got)
	}
	r.applied(r.place("work", nil, configMap("one", "a: b")))
	if got := hub.discovery(); len(got) > 0 {
		t.Errorf("the hub was asked for %v", got)
	}
	if got := member.discovery(); !slices.Contains(got, "/apis") {
		t.Errorf("for a manifest this cluster was asked only for %v", got)
	}
}
