// Package local is what the agent touches on its own cluster, the member: the objects that decide, the nodes and pods, and the API
// server's version and health.
//
// Its invariant: it writes the two Secrets fleet-agent and fleet-agent-bootstrap, or the ConfigMap member-agent-hub, and nothing else.
package local

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/agent/client"
	"github.com/muster-fleet/muster/internal/naming"
)

// timeout bounds each request that is not a watch.
const timeout = 10 * time.Second

// The kinds the agent follows.
type (
	// Secrets of the agent's namespace.
	Secrets = client.Resource[*corev1.Secret, *corev1.SecretList]
	// ConfigMaps of the agent's namespace.
	ConfigMaps = client.Resource[*corev1.ConfigMap, *corev1.ConfigMapList]
)

// Cluster is the member.
type Cluster struct {
	// Namespace is the agent's.
	Namespace  string
	Secrets    *Secrets
	ConfigMaps *ConfigMaps

	nodes      *client.Resource[*corev1.Node, *corev1.NodeList]
	pods       *client.Resource[*corev1.Pod, *corev1.PodList]
	namespaces *client.Resource[*corev1.Namespace, *corev1.NamespaceList]
	raw        rest.Interface
	connection *client.Connection
}

// New prepares access to the member.
func New(config *rest.Config, namespace string) (*Cluster, error) {
	config = rest.CopyConfig(config)
	// Lists of pods are the largest thing that the agent reads.
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	connection, err := client.Connect(config)
	if err != nil {
		return nil, err
	}
	v1 := corev1.SchemeGroupVersion
	c := &Cluster{Namespace: namespace, connection: connection}
	if c.raw, err = connection.REST(v1); err != nil {
		return nil, err
	}
	if c.Secrets, err = c.SecretsIn(namespace); err != nil {
		return nil, err
	}
	if c.ConfigMaps, err = client.Of(connection, v1.WithResource("configmaps"), namespace,
		func() *corev1.ConfigMap { return &corev1.ConfigMap{} }, func() *corev1.ConfigMapList { return &corev1.ConfigMapList{} }); err != nil {
		return nil, err
	}
	if c.nodes, err = client.Of(connection, v1.WithResource("nodes"), "",
		func() *corev1.Node { return &corev1.Node{} }, func() *corev1.NodeList { return &corev1.NodeList{} }); err != nil {
		return nil, err
	}
	if c.pods, err = client.Of(connection, v1.WithResource("pods"), "",
		func() *corev1.Pod { return &corev1.Pod{} }, func() *corev1.PodList { return &corev1.PodList{} }); err != nil {
		return nil, err
	}
	if c.namespaces, err = client.Of(connection, v1.WithResource("namespaces"), "",
		func() *corev1.Namespace { return &corev1.Namespace{} }, func() *corev1.NamespaceList { return &corev1.NamespaceList{} }); err != nil {
		return nil, err
	}
	return c, nil
}

// SecretsIn are those of a namespace.
func (c *Cluster) SecretsIn(namespace string) (*Secrets, error) {
	return client.Of(c.connection, corev1.SchemeGroupVersion.WithResource("secrets"), namespace,
		func() *corev1.Secret { return &corev1.Secret{} }, func() *corev1.SecretList { return &corev1.SecretList{} })
}

// FollowNodes keeps store equal to the nodes until ctx ends, and tells outcome of failures.
func (c *Cluster) FollowNodes(ctx context.Context, store cache.ReflectorStore, outcome func(error)) {
	client.Follow(ctx, c.nodes, "", store, outcome)
}

// FollowPods does so for the pods that take something from a node: scheduled ones that have not ended.
func (c *Cluster) FollowPods(ctx context.Context, store cache.ReflectorStore, outcome func(error)) {
	client.Follow(ctx, c.pods, "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed", store, outcome)
}

// Delivered says whether releases are left of what was delivered to a member, given the UID of its report.
func (c *Cluster) Delivered(ctx context.Context, member string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	secrets, err := c.Secrets.List(ctx, metav1.ListOptions{LabelSelector: naming.LabelMember + "=" + member, Limit: 1})
	if err != nil {
		return false, fmt.Errorf("listing the releases in namespace %s: %w", c.Namespace, err)
	}
	return len(secrets.Items) > 0, nil
}

// Applied says whether anything is left of what was applied of the Works of a member namespace.
func (c *Cluster) Applied(ctx context.Context, namespace string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	raw, err := c.connection.REST(placement.GroupVersion)
	if err != nil {
		return false, err
	}
	text, err := raw.Get().Resource("appliedworks").SetHeader("Accept", "application/json").Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return false, nil // without the kind nothing was applied
	}
	var all placement.AppliedWorkList
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return false, fmt.Errorf("listing AppliedWorks: %w", err)
	}
	return slices.ContainsFunc(all.Items, func(a placement.AppliedWork) bool { return a.Spec.WorkNamespace == namespace }), nil
}

// Store writes a Secret of the agent's namespace, whether or not it exists and whatever it says.
func (c *Cluster) Store(ctx context.Context, secret *corev1.Secret) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := c.Secrets.Create(ctx, secret, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = c.Secrets.Update(ctx, secret, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("storing secret %s/%s: %w", c.Namespace, secret.Name, err)
	}
	return nil
}

// Replace writes a Secret of the agent's namespace over the version that it names, and fails if there is another one meanwhile.
func (c *Cluster) Replace(ctx context.Context, secret *corev1.Secret) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if _, err := c.Secrets.Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("replacing secret %s/%s: %w", c.Namespace, secret.Name, err)
	}
	return nil
}

// StoreConfigMap writes a ConfigMap of the agent's namespace, whether or not it exists.
func (c *Cluster) StoreConfigMap(ctx context.Context, configMap *corev1.ConfigMap) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := c.ConfigMaps.Create(ctx, configMap, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = c.ConfigMaps.Update(ctx, configMap, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("storing configmap %s/%s: %w", c.Namespace, configMap.Name, err)
	}
	return nil
}

// Forget deletes the registration token as it was seen. What is gone already is not an error, nor is another one in its place, which stays.
func (c *Cluster) Forget(ctx context.Context, version string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := c.Secrets.Delete(ctx, naming.AgentBootstrapSecret, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting secret %s/%s: %w", c.Namespace, naming.AgentBootstrapSecret, err)
	}
	return nil
}

// ID is the UID of namespace kube-system, which is the client ID of a cluster that was given none.
func (c *Cluster) ID(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	namespace, err := c.namespaces.Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading namespace %s, whose UID is the client ID by default: %w", metav1.NamespaceSystem, err)
	}
	return string(namespace.UID), nil
}

// Version is that of the member's API server, such as v1.36.3.
func (c *Cluster) Version(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	body, err := c.raw.Get().AbsPath("/version").DoRaw(ctx)
	if err != nil {
		return "", fmt.Errorf("reading /version of the member's API server: %w", err)
	}
	var info version.Info
	if err := json.Unmarshal(body, &info); err != nil {
		return "", fmt.Errorf("decoding /version of the member's API server: %w", err)
	}
	return info.GitVersion, nil
}

// Ready asks the member's API server whether it is ready.
func (c *Cluster) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if _, err := c.raw.Get().AbsPath("/readyz").DoRaw(ctx); err != nil {
		return fmt.Errorf("asking /readyz of the member's API server: %w", err)
	}
	return nil
}
