package hub_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
)

// reads are the paths that the shared hub has asked the API server for.
var reads requests

type requests struct {
	mu    sync.Mutex
	paths []string
}

// of wraps the transport of a hub.
func (r *requests) of(next http.RoundTripper) http.RoundTripper { return reading{next, r} }

type reading struct {
	http.RoundTripper
	requests *requests
}

func (r reading) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodGet {
		r.requests.mu.Lock()
		r.requests.paths = append(r.requests.paths, request.URL.Path)
		r.requests.mu.Unlock()
	}
	return r.RoundTripper.RoundTrip(request)
}

// in returns the reads of objects of a namespace.
func (r *requests) in(namespace string) (found []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, path := range r.paths {
		if strings.Contains(path, "/namespaces/"+namespace+"/") {
			found = append(found, path)
		}
	}
	return found
}

func TestALookAtATokenThatIsAsItShouldBeReadsNothing(t *testing.T) {
	f := newFixture(t)
	for name, ttl := range map[string]string{"with-ttl": "240h", "without-ttl": ""} {
		f.token(name, ttl)
		look := func() {
			for _, step := range [][2]string{{`{"muster/mine":"x"}`, "InvalidLabels"}, {"null", "Ready"}} {
				labels, reason := step[0], step[1]
				token := &fleet.ClusterRegistrationToken{}
				f.check(f.get(token, f.workspace, name))
				f.check(f.Patch(context.Background(), token, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"labels":`+labels+`}}`))))
				f.eventually("the hub looks at "+name, func() error { return f.tokenIs(name, reason) })
			}
		}
		look() // by now the hub's cache has what it wrote
		before := len(reads.in(f.workspace))
		if before == 0 {
			t.Fatal("no read is counted")
		}
		for range 3 {
			look()
		}
		if after := reads.in(f.workspace); len(after) > before {
			t.Errorf("six looks at %s read %v", name, after[before:])
		}
	}
}

func TestWhatSomebodyChangedOfATokensObjectsIsPutBack(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	token, _ := f.token("new-token", "240h")
	account := naming.TokenServiceAccount(token.Name, string(token.UID))
	role, binding, secret := &rbacv1.Role{}, &rbacv1.RoleBinding{}, &corev1.Secret{}
	for range 2 { // the second time the hub has seen a change before
		f.check(f.get(role, f.workspace, naming.SafeConcat(account, "role")))
		f.check(f.get(binding, f.workspace, naming.SafeConcat(account, "to", "role")))
		f.check(f.get(secret, f.workspace, token.Name))
		rules, subjects := role.Rules, binding.Subjects
		role.Rules, binding.Subjects, secret.Data["values"] = rules[:1], nil, []byte("token: stolen\n")
		for _, object := range []client.Object{role, binding, secret} {
			f.check(f.Update(ctx, object))
		}
		f.eventually("all is as before", func() error {
			if err := f.get(role, f.workspace, role.Name); err != nil {
				return err
			}
			if err := f.get(binding, f.workspace, binding.Name); err != nil {
				return err
			}
			if len(role.Rules) != len(rules) || len(binding.Subjects) != len(subjects) || f.values(token.Name)["token"] == "stolen" {
				return fmt.Errorf("the rules are %v, the subjects %v", role.Rules, binding.Subjects)
			}
			return nil
		})
	}
	f.eventually("the token registers", func() error {
		_, err := f.ask(f.values(token.Name), fleet.ClusterRegistrationSpec{ClientID: "healed"})
		return err
	})
}
