// Package kubeclient accesses an API server for an agent: the member's or the hub's. It has typed
// access to single resources, and watches for keeping a copy of them. The dashboard uses the same
// watches for its copy of the fleet.
//
// Its invariant: a client costs only the parts in use. There is no discovery, no full clientset and
// no shared cache. The scheme has only the kinds used by an agent: an idle agent stays within 35
// MiB.
package kubeclient

import (
	"fmt"
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/restore"
)

var (
	scheme     = newScheme()
	codecs     = serializer.NewCodecFactory(scheme)
	parameters = runtime.NewParameterCodec(scheme)
)

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypes(corev1.SchemeGroupVersion,
		&corev1.Secret{}, &corev1.SecretList{}, &corev1.ConfigMap{}, &corev1.ConfigMapList{},
		&corev1.Node{}, &corev1.NodeList{}, &corev1.Pod{}, &corev1.PodList{}, &corev1.Namespace{}, &corev1.NamespaceList{})
	s.AddKnownTypes(coordinationv1.SchemeGroupVersion, &coordinationv1.Lease{}, &coordinationv1.LeaseList{})
	s.AddKnownTypes(authenticationv1.SchemeGroupVersion, &authenticationv1.TokenRequest{})
	s.AddKnownTypes(fleet.GroupVersion, &fleet.ClusterRegistration{}, &fleet.ClusterRegistrationList{},
		&fleet.BundleDeployment{}, &fleet.BundleDeploymentList{}, &fleet.Content{}, &fleet.ContentList{})
	s.AddKnownTypes(clusterv1beta1.GroupVersion, &clusterv1beta1.InternalMemberCluster{}, &clusterv1beta1.InternalMemberClusterList{})
	s.AddKnownTypes(placement.GroupVersion, &placement.AppliedWork{}, &placement.AppliedWorkList{})
	for _, version := range ClusterPropertyVersions {
		s.AddKnownTypes(version, &ClusterProperty{}, &ClusterPropertyList{})
		metav1.AddToGroupVersion(s, version)
	}
	for _, version := range []schema.GroupVersion{
		corev1.SchemeGroupVersion, coordinationv1.SchemeGroupVersion, authenticationv1.SchemeGroupVersion,
		fleet.GroupVersion, clusterv1beta1.GroupVersion, placement.GroupVersion, {Version: "v1"},
	} {
		metav1.AddToGroupVersion(s, version)
	}
	return s
}

// Object is a pointer to a kind of the scheme.
type Object interface {
	runtime.Object
	metav1.Object
	comparable
}

// Resource is the client of one kind of object in one namespace of one API server.
type Resource[T Object, L runtime.Object] = gentype.ClientWithList[T, L]

// Connection is a connection to one API server, shared by all its resources.
type Connection struct {
	config *rest.Config
	http   *http.Client
	// server is the shared state of the API server for the watches of custom resources.
	server *restore.Server
}

// Connect prepares a connection without sending a request.
func Connect(config *rest.Config) (*Connection, error) {
	config = Unlimited(config)
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to %s: %w", config.Host, err)
	}
	return &Connection{config: config, http: httpClient, server: restore.NewServer()}, nil
}

// Unlimited returns a copy of a config without a client-side rate limit and without warnings in the
// log. A rate limit would only delay a join or a delivery, because the API server limits by
// priority and fairness.
func Unlimited(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS, config.WarningHandlerWithContext = -1, rest.NoWarnings{}
	return config
}

// REST returns the raw client for a group version.
func (c *Connection) REST(version schema.GroupVersion) (rest.Interface, error) {
	config := rest.CopyConfig(c.config)
	config.GroupVersion = &version
	config.NegotiatedSerializer = codecs.WithoutConversion()
	config.APIPath = "/apis"
	if version.Group == "" {
		config.APIPath = "/api"
	}
	client, err := rest.RESTClientForConfigAndClient(config, c.http)
	if err != nil {
		return nil, fmt.Errorf("preparing the client of %s on %s: %w", version, config.Host, err)
	}
	return client, nil
}

// Of returns the client of a resource with objects *T and lists *L. Namespace is empty for cluster
// scope.
func Of[T, L any, O interface {
	*T
	Object
}, P interface {
	*L
	runtime.Object
}](c *Connection, resource schema.GroupVersionResource, namespace string) (*Resource[O, P], error) {
	raw, err := c.REST(resource.GroupVersion())
	if err != nil {
		return nil, err
	}
	return By[T, L, O, P](raw, resource.Resource, namespace), nil
}

// By does the same as Of with the client for the group version.
func By[T, L any, O interface {
	*T
	Object
}, P interface {
	*L
	runtime.Object
}](raw rest.Interface, resource, namespace string) *Resource[O, P] {
	return gentype.NewClientWithList(resource, raw, parameters, namespace, func() O { return new(T) }, func() P { return new(L) })
}
