package release

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
)

// discoveryAge bounds the age of the discovery cache for a missing kind.
const discoveryAge = 5 * time.Second

// expiringDiscovery is a discovery cache with an expiry, to look up a missing kind again.
type expiringDiscovery struct {
	discovery.CachedDiscoveryInterface
	clock clock.PassiveClock

	mu    sync.Mutex
	asked time.Time
}

// Fresh implements CachedDiscoveryInterface. The mapper calls it for an unknown kind.
func (r *expiringDiscovery) Fresh() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.clock.Since(r.asked) < discoveryAge
}

// Invalidate implements CachedDiscoveryInterface.
func (r *expiringDiscovery) Invalidate() {
	r.mu.Lock()
	r.asked = r.clock.Now()
	r.mu.Unlock()
	r.CachedDiscoveryInterface.Invalidate()
}

var (
	crdResource        = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	apiServiceResource = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
)

// Find maps a kind to its resource, in this version or another one. A kind counts as unserved, and
// so without objects, only on two conditions. The API server reports it as unserved, and no
// CustomResourceDefinition or APIService could serve it.
func (c *Cluster) Find(ctx context.Context, kind schema.GroupVersionKind) (mapping *meta.RESTMapping, served bool, err error) {
	mapping, err = c.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		mapping, err = c.Mapper.RESTMapping(kind.GroupKind())
	}
	switch {
	case err == nil:
		return mapping, true, nil
	case !meta.IsNoMatchError(err):
		return nil, false, fmt.Errorf("asking what serves %s: %w", kind.GroupKind(), err)
	}
	if served, err = c.serves(ctx, kind.GroupKind()); served && err == nil {
		err = fmt.Errorf("%s is defined, but not served at the moment", kind.GroupKind())
	}
	return nil, false, err
}

// remap resets the mapper, and reports whether the kind is gone or maps to another resource now. It
// does nothing, and returns false, while the cache is fresh.
func (c *Cluster) remap(believed *meta.RESTMapping) bool {
	if c.kinds.Fresh() {
		return false
	}
	c.Mapper.Reset()
	kind := believed.GroupVersionKind
	mapping, err := c.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	return meta.IsNoMatchError(err) || err == nil && mapping.Resource != believed.Resource
}

// serves checks with the API server, not with the cache, whether a kind is served or defined. An
// unresponsive part of the API is an error.
func (c *Cluster) serves(ctx context.Context, kind schema.GroupKind) (bool, error) {
	versions, err := c.versions(ctx, kind.Group)
	if err != nil {
		return false, fmt.Errorf("asking whether %s is served: %w", kind, err)
	}
	for _, version := range versions {
		resources, err := c.live.ServerResourcesForGroupVersion(version)
		if err != nil {
			return false, fmt.Errorf("querying the served kinds of %s: %w", version, err)
		}
		if slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind.Kind }) {
			return true, nil
		}
	}
	return c.defined(ctx, kind)
}

// versions returns the served versions of a group, and the versions of its APIServices with a
// server of their own, possibly unresponsive.
func (c *Cluster) versions(ctx context.Context, group string) ([]string, error) {
	if group == "" {
		return []string{"v1"}, nil
	}
	groups, err := c.live.ServerGroups()
	if err != nil {
		return nil, err
	}
	var versions []string
	for _, served := range groups.Groups {
		for _, version := range served.Versions {
			if served.Name == group {
				versions = append(versions, version.GroupVersion)
			}
		}
	}
	services, err := c.Dynamic.Resource(apiServiceResource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing APIServices: %w", err)
	}
	for _, service := range services.Items {
		of, _, _ := unstructured.NestedString(service.Object, "spec", "group")        // the schema makes it a string
		version, _, _ := unstructured.NestedString(service.Object, "spec", "version") // likewise
		_, elsewhere, _ := unstructured.NestedMap(service.Object, "spec", "service")  // the schema makes it a map
		name := schema.GroupVersion{Group: of, Version: version}.String()
		if of == group && elsewhere && !slices.Contains(versions, name) {
			versions = append(versions, name)
		}
	}
	return versions, nil
}

// defined reports whether a CustomResourceDefinition of the kind exists, although it may not be
// served at the moment.
func (c *Cluster) defined(ctx context.Context, kind schema.GroupKind) (bool, error) {
	crds, err := c.Metadata.Resource(crdResource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, fmt.Errorf("listing CustomResourceDefinitions: %w", err)
	}
	for _, one := range crds.Items {
		if !strings.HasSuffix(one.Name, "."+kind.Group) {
			continue
		}
		crd, err := c.Dynamic.Resource(crdResource).Get(ctx, one.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("reading CustomResourceDefinition %s: %w", one.Name, err)
		}
		group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")        // the schema makes it a string
		name, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind") // likewise
		if group == kind.Group && name == kind.Kind {
			return true, nil
		}
	}
	return false, nil
}
