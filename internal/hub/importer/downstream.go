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

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/kube"
)

// helmManager is as whom Helm writes, who takes over what is installed here: a field has one owner, which may take it away again.
const helmManager = client.FieldOwner("helm")

const (
	// dialTimeout and probeTimeout find out soon whether anybody answers; callTimeout bounds every call after that.
	dialTimeout  = 3 * time.Second
	probeTimeout = 5 * time.Second
	callTimeout  = 15 * time.Second
	// maxAnswer bounds what an API server, which is anybody's, can make the hub read.
	maxAnswer = 4 << 20
)

// downstream is one visit to the API server of a cluster that is imported. It ends with close; nothing of it is kept.
type downstream struct {
	client.Client
	server string
	http   *http.Client
	close  func()
}

// visit prepares the calls. It does not use client-go's own transports, because those are cached with the credentials in them.
func (c *Controller) visit(k kubeconfig) (*downstream, error) {
	tls, err := rest.TLSConfigFor(k.config)
	if err != nil {
		return nil, errors.New("the certificates or the key in the kubeconfig cannot be read")
	}
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSClientConfig:     tls,
		TLSHandshakeTimeout: dialTimeout,
		ForceAttemptHTTP2:   true,
	}
	if k.config.Proxy != nil {
		transport.Proxy = k.config.Proxy
	}
	wrapped, err := rest.HTTPWrappersForConfig(k.config, bounded{transport})
	if err != nil {
		return nil, errors.New("the credential in the kubeconfig cannot be used")
	}
	calls := &http.Client{
		Transport: wrapped, Timeout: callTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the credential stays where it belongs
	}
	bare := rest.Config{Host: k.config.Host, APIPath: k.config.APIPath, QPS: -1}
	made, err := client.New(&bare, client.Options{HTTPClient: calls, Scheme: c.Client.Scheme(), Mapper: kinds})
	if err != nil {
		transport.CloseIdleConnections()
		return nil, errors.New("the server in the kubeconfig cannot be used")
	}
	return &downstream{Client: made, server: strings.TrimSuffix(k.server, "/"), http: calls, close: transport.CloseIdleConnections}, nil
}

// bounded cuts answers off that are too long to be true.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(request)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, maxAnswer)
	}
	return response, err
}

// kinds are the resources of what the agent's chart renders, so that nothing has to be discovered.
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

// probe finds out whether the API server answers at all.
func (d *downstream) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return d.get(ctx, "/version", &struct{}{})
}

// clusterID is what tells the cluster from all others.
func (d *downstream) clusterID(ctx context.Context) (string, error) {
	var namespace metav1.PartialObjectMetadata
	if err := d.get(ctx, "/api/v1/namespaces/"+metav1.NamespaceSystem, &namespace); err != nil {
		return "", err
	}
	if namespace.UID == "" {
		return "", errors.New("its namespace kube-system has no UID")
	}
	return string(namespace.UID), nil
}

// get reads what is no matter of a client: the answer of any API server, whatever it is.
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
		return fmt.Errorf("it answers %s with something that is not JSON; is it an API server?", path)
	}
	return nil
}

// apply brings the objects to the cluster. What was there before and cannot be changed is made anew.
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

// remove deletes an object that may be gone already.
func (d *downstream) remove(ctx context.Context, object client.Object, policy metav1.DeletionPropagation) error {
	return client.IgnoreNotFound(d.Delete(ctx, object, client.PropagationPolicy(policy)))
}

// removeAgent takes an agent away: all that its namespace has of it, but not the namespace, which may have more in it.
func (d *downstream) removeAgent(ctx context.Context, objects []*unstructured.Unstructured, own ...string) error {
	for _, object := range objects {
		if object.GetNamespace() == "" {
			continue
		}
		if err := d.remove(ctx, object, metav1.DeletePropagationBackground); err != nil {
			return fmt.Errorf("removing %s: %w", kube.Describe(d.Scheme(), object), err)
		}
	}
	for _, name := range own {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: objects[0].GetName(), Name: name}}
		if err := d.remove(ctx, secret, metav1.DeletePropagationBackground); err != nil {
			return fmt.Errorf("removing Secret %s/%s: %w", secret.Namespace, name, err)
		}
	}
	return nil
}
