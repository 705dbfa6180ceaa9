package importer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/hub/runtime/kubeconfig"
	"github.com/muster-fleet/muster/internal/kube"
)

// helmManager is the field manager of Helm. Helm later takes over the installed objects: only the
// owner of a field can remove it again.
const helmManager = client.FieldOwner("helm")

const (
	// dialTimeout and probeTimeout bound the first call, callTimeout each later call.
	dialTimeout  = 3 * time.Second
	probeTimeout = 5 * time.Second
	callTimeout  = 15 * time.Second
	// maxAnswer bounds the answers: the server may be any server.
	maxAnswer = 4 << 20
	// attemptTime bounds the time of new calls on a connection. Even the slowest answers within the
	// limits hold it no longer.
	attemptTime = 2 * time.Minute
)

// downstream is one connection to the API server of a cluster under import. Nothing of it is kept
// after close.
type downstream struct {
	client.Client
	server string
	http   *http.Client
	close  func()
	// known: the server has answered like a Kubernetes API server. Before, it may be any server within
	// the hub's reach only.
	known bool
}

// connect prepares the calls. It does not use client-go's own transports, because client-go caches
// them with the credentials in them.
func (c *Controller) connect(k kubeconfig.Kubeconfig) (*downstream, error) {
	if err := kubeconfig.CheckLiteral(k.Server, true); err != nil {
		return nil, err
	}
	tls, err := rest.TLSConfigFor(k.Config)
	if err != nil {
		return nil, errors.New("the certificates or the key in the kubeconfig cannot be read")
	}
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: dialTimeout, Control: c.control(k.Server)}).DialContext,
		TLSClientConfig:     tls,
		TLSHandshakeTimeout: dialTimeout,
		IdleConnTimeout:     dialTimeout, // after close, a timed-out call releases its connection
		ForceAttemptHTTP2:   true,
	}
	wrapped, err := rest.HTTPWrappersForConfig(k.Config, bounded{transport, c.Clock, c.Clock.Now().Add(attemptTime)})
	if err != nil {
		return nil, errors.New("the credential in the kubeconfig cannot be used")
	}
	calls := &http.Client{
		Transport: wrapped, Timeout: callTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the credential stays with its server
	}
	bare := rest.Config{Host: k.Config.Host, APIPath: k.Config.APIPath, QPS: -1}
	made, err := client.New(&bare, client.Options{HTTPClient: calls, Scheme: c.Client.Scheme(), Mapper: kinds})
	if err != nil {
		transport.CloseIdleConnections()
		return nil, errors.New("the server in the kubeconfig cannot be used")
	}
	return &downstream{Client: made, server: strings.TrimSuffix(k.Server, "/"), http: calls, close: transport.CloseIdleConnections}, nil
}

// bounded truncates long answers, and starts no call after until.
type bounded struct {
	next  http.RoundTripper
	clock clock.PassiveClock
	until time.Time
}

func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	if b.clock.Now().After(b.until) {
		return nil, context.DeadlineExceeded
	}
	response, err := b.next.RoundTrip(request)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, maxAnswer)
	}
	return response, err
}

// kinds maps the resources in the agent's chart, and saves a discovery.
var kinds = func() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	add := func(group string, scope meta.RESTScope, names ...string) {
		for _, name := range names {
			mapper.Add(schema.GroupVersionKind{Group: group, Version: "v1", Kind: name}, scope)
		}
	}
	add("", meta.RESTScopeRoot, "Namespace")
	add("", meta.RESTScopeNamespace, "Secret", "ConfigMap", "ServiceAccount")
	add("apps", meta.RESTScopeNamespace, "Deployment")
	add("networking.k8s.io", meta.RESTScopeNamespace, "NetworkPolicy")
	add("policy", meta.RESTScopeNamespace, "PodDisruptionBudget")
	add("scheduling.k8s.io", meta.RESTScopeRoot, "PriorityClass")
	add("apiextensions.k8s.io", meta.RESTScopeRoot, "CustomResourceDefinition")
	add("rbac.authorization.k8s.io", meta.RESTScopeNamespace, "Role", "RoleBinding")
	add("rbac.authorization.k8s.io", meta.RESTScopeRoot, "ClusterRole", "ClusterRoleBinding")
	add("authorization.k8s.io", meta.RESTScopeRoot, "SelfSubjectAccessReview")
	return mapper
}()

// probe checks whether the API server answers at all.
func (d *downstream) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return d.get(ctx, "/version", &struct{}{})
}

// clusterID returns the UID of the namespace kube-system.
func (d *downstream) clusterID(ctx context.Context) (string, error) {
	var namespace metav1.PartialObjectMetadata
	if err := d.get(ctx, "/api/v1/namespaces/"+metav1.NamespaceSystem, &namespace); err != nil {
		return "", err
	}
	if namespace.UID == "" {
		return "", errNotAPIServer
	}
	return string(namespace.UID), nil
}

// get reads JSON. The server may be no API server at all.
func (d *downstream) get(ctx context.Context, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.server+path, http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json")
	response, err := d.http.Do(request)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return apierrors.NewGenericServerResponse(response.StatusCode, "get", schema.GroupResource{}, path, "", 0, true)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return errNotAPIServer
	}
	return nil
}

// apply applies the objects. It replaces a Deployment or PriorityClass with a change of an
// immutable field.
func (d *downstream) apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		err := d.applyOne(ctx, object)
		if apierrors.IsInvalid(err) && (object.GetKind() == "Deployment" || object.GetKind() == "PriorityClass") {
			if err = d.remove(ctx, object, metav1.DeletePropagationBackground); err == nil {
				err = d.applyOne(ctx, object)
			}
		}
		if err != nil {
			return fmt.Errorf("applying %s: %w", kube.Describe(d.Scheme(), object), err)
		}
	}
	return nil
}

func (d *downstream) applyOne(ctx context.Context, object *unstructured.Unstructured) error {
	return d.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), helmManager, client.ForceOwnership)
}

// remove deletes an object, and ignores a missing one.
func (d *downstream) remove(ctx context.Context, object client.Object, policy metav1.DeletionPropagation) error {
	return client.IgnoreNotFound(d.Delete(ctx, object, client.PropagationPolicy(policy)))
}
