package work

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// ownKinds maps the kinds of this package without a request.
func ownKinds() *meta.DefaultRESTMapper {
	own := meta.NewDefaultRESTMapper([]schema.GroupVersion{placement.GroupVersion})
	for kind, scope := range map[string]meta.RESTScope{"Work": meta.RESTScopeNamespace, "AppliedWork": meta.RESTScopeRoot} {
		own.Add(placement.GroupVersion.WithKind(kind), scope)
		own.Add(placement.GroupVersion.WithKind(kind+"List"), scope) // controller-runtime requests its scope
	}
	return own
}

// hubKinds returns the mapper for the hub. It only knows Works: a hub with access to Works for the
// agent also serves them.
func hubKinds(*rest.Config, *http.Client) (meta.RESTMapper, error) { return ownKinds(), nil }

// memberKinds is the mapper for this cluster. It looks up AppliedWorks with one small request. It
// discovers all kinds only for a manifest, because many definitions make hundreds of KB.
type memberKinds struct {
	// RESTMapper discovers.
	meta.RESTMapper
	own    *meta.DefaultRESTMapper
	client discovery.ServerResourcesInterface

	mu     sync.Mutex
	served bool
}

func newMemberKinds(config *rest.Config, httpClient *http.Client) (meta.RESTMapper, error) {
	all, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return nil, err
	}
	client, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}
	return &memberKinds{RESTMapper: all, own: ownKinds(), client: client}, nil
}

// RESTMapping implements meta.RESTMapper.
func (m *memberKinds) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	owner := placement.GroupVersion.WithKind("AppliedWork")
	if kind.Group != owner.Group || strings.TrimSuffix(kind.Kind, "List") != owner.Kind {
		return m.RESTMapper.RESTMapping(kind, versions...)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.served {
		list, err := m.client.ServerResourcesForGroupVersion(placement.GroupVersion.String())
		if apierrors.IsNotFound(err) || err == nil && !hasKind(list, owner.Kind) {
			return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: []string{owner.Version}}
		}
		if err != nil {
			return nil, err
		}
		m.served = true
	}
	return m.own.RESTMapping(kind, versions...)
}

func hasKind(list *metav1.APIResourceList, kind string) bool {
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind })
}
