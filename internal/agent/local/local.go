// Package local accesses the agent's own cluster, the member. It reads and watches the
// configuration of the agent, the nodes and pods, and the API server's version and health.
//
// Its invariant: it writes only the ConfigMap muster-hub-term and the Secrets fleet-agent,
// fleet-agent-bootstrap and fleet-agent-key, or fleet-agent-key, member-agent-credential and the
// ConfigMap member-agent-hub.
package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/kubeclient"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/uninstall"
)

// timeout bounds each request except watches.
const timeout = 10 * time.Second

// agentRelease is the name of the agent's own release.
const agentRelease = "fleet-agent"

// The kinds the agent follows.
type (
	// Secrets of the agent's namespace.
	Secrets = kubeclient.Resource[*corev1.Secret, *corev1.SecretList]
	// ConfigMaps of the agent's namespace.
	ConfigMaps = kubeclient.Resource[*corev1.ConfigMap, *corev1.ConfigMapList]
)

// Cluster is the member.
type Cluster struct {
	// Namespace is the agent's namespace.
	Namespace  string
	Secrets    *Secrets
	ConfigMaps *ConfigMaps
	// FactsConfigMap is the name of the ConfigMap with custom facts; empty if there is none.
	FactsConfigMap string

	nodes      *kubeclient.Resource[*corev1.Node, *corev1.NodeList]
	pods       *kubeclient.Resource[*corev1.Pod, *corev1.PodList]
	namespaces *kubeclient.Resource[*corev1.Namespace, *corev1.NamespaceList]
	properties []*clusterProperties
	applied    *kubeclient.Resource[*placement.AppliedWork, *placement.AppliedWorkList]
	raw        rest.Interface
	id         atomic.Pointer[string]
}

// New prepares access to the member.
func New(config *rest.Config, namespace string) (*Cluster, error) {
	config = rest.CopyConfig(config)
	// Lists of pods are the agent's largest reads.
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	connection, err := kubeclient.Connect(config)
	if err != nil {
		return nil, err
	}
	c := &Cluster{Namespace: namespace}
	if c.raw, err = connection.REST(corev1.SchemeGroupVersion); err != nil {
		return nil, err
	}
	if c.applied, err = kubeclient.Of[placement.AppliedWork, placement.AppliedWorkList](connection,
		placement.GroupVersion.WithResource("appliedworks"), ""); err != nil {
		return nil, err
	}
	for _, version := range kubeclient.ClusterPropertyVersions {
		properties, err := kubeclient.Of[kubeclient.ClusterProperty, kubeclient.ClusterPropertyList](connection,
			version.WithResource("clusterproperties"), "")
		if err != nil {
			return nil, err
		}
		c.properties = append(c.properties, properties)
	}
	c.Secrets = c.SecretsIn(namespace)
	c.ConfigMaps = kubeclient.By[corev1.ConfigMap, corev1.ConfigMapList](c.raw, "configmaps", namespace)
	c.nodes = kubeclient.By[corev1.Node, corev1.NodeList](c.raw, "nodes", "")
	c.pods = kubeclient.By[corev1.Pod, corev1.PodList](c.raw, "pods", "")
	c.namespaces = kubeclient.By[corev1.Namespace, corev1.NamespaceList](c.raw, "namespaces", "")
	return c, nil
}

// SecretsIn returns the Secrets of a namespace.
func (c *Cluster) SecretsIn(namespace string) *Secrets {
	return kubeclient.By[corev1.Secret, corev1.SecretList](c.raw, "secrets", namespace)
}

// Uninstall returns the part of the member that finds and removes the agent.
func (c *Cluster) Uninstall() uninstall.Cluster { return uninstall.New(c.raw) }

// FollowNodes keeps store equal to the nodes until ctx ends, and calls outcome with failures.
func (c *Cluster) FollowNodes(ctx context.Context, store cache.ReflectorStore, outcome func(error)) {
	kubeclient.Follow(ctx, c.nodes, "", store, outcome)
}

// FollowPods keeps store equal to the pods with resources of a node: scheduled ones that have not
// ended.
func (c *Cluster) FollowPods(ctx context.Context, store cache.ReflectorStore, outcome func(error)) {
	kubeclient.Follow(ctx, c.pods, "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed", store, outcome)
}

// PodsOf returns the number of pods in the agent's namespace with a hostname. The hostname is the
// name of the pod, cut to 63 characters by Kubernetes. With host networking it is the name of the
// node, shared by several pods.
func (c *Cluster) PodsOf(ctx context.Context, hostname string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	list, err := c.pods.List(ctx, metav1.ListOptions{FieldSelector: "metadata.namespace=" + c.Namespace})
	if err != nil {
		return 0, fmt.Errorf("listing the pods of %s: %w", c.Namespace, err)
	}
	number := 0
	for i := range list.Items {
		if pod := &list.Items[i]; strings.HasPrefix(pod.Name, hostname) || pod.Spec.HostNetwork && pod.Spec.NodeName == hostname {
			number++
		}
	}
	return number, nil
}

// FollowNamespaces keeps store equal to the namespaces.
func (c *Cluster) FollowNamespaces(ctx context.Context, store cache.ReflectorStore, outcome func(error)) {
	kubeclient.Follow(ctx, c.namespaces, "", store, outcome)
}

// HasReleases reports whether releases from deliveries to members are left, given the UIDs of their
// reports.
func (c *Cluster) HasReleases(ctx context.Context, members ...string) (bool, error) {
	return c.hasReleases(ctx, naming.LabelMember+" in ("+strings.Join(members, ",")+")")
}

// HasUnownedReleases reports whether releases without a member exist: from a user, or from a
// Rancher Fleet agent, which may be this member's. The agent's own release does not count.
func (c *Cluster) HasUnownedReleases(ctx context.Context) (bool, error) {
	return c.hasReleases(ctx, "owner=helm,!"+naming.LabelMember+",name!="+agentRelease)
}

// HasRelease reports whether a Helm release has a history.
func (c *Cluster) HasRelease(ctx context.Context, namespace, name string) (bool, error) {
	return c.hasReleasesIn(ctx, namespace, "owner=helm,name="+name)
}

func (c *Cluster) hasReleases(ctx context.Context, selector string) (bool, error) {
	return c.hasReleasesIn(ctx, metav1.NamespaceAll, selector)
}

func (c *Cluster) hasReleasesIn(ctx context.Context, namespace, selector string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	secrets, err := c.SecretsIn(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: 1})
	if err != nil {
		return false, fmt.Errorf("listing the releases that were delivered: %w", err)
	}
	return len(secrets.Items) > 0, nil
}

// HasApplied reports whether AppliedWorks are left from the Works of a member namespace, given the
// UIDs of its reports. AppliedWorks of earlier agents name no report.
func (c *Cluster) HasApplied(ctx context.Context, namespace string, members ...string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	all, err := c.applied.List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil // nothing was applied without the kind
	} else if err != nil {
		return false, fmt.Errorf("listing AppliedWorks: %w", err)
	}
	return slices.ContainsFunc(all.Items, func(a placement.AppliedWork) bool {
		marked := a.Labels[naming.LabelMember]
		return a.Spec.WorkNamespace == namespace && (marked == "" || slices.Contains(members, marked))
	}), nil
}

// Create writes a Secret of the agent's namespace, unless one of the name exists.
func (c *Cluster) Create(ctx context.Context, secret *corev1.Secret) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if _, err := c.Secrets.Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating secret %s/%s: %w", c.Namespace, secret.Name, err)
	}
	return nil
}

// Store creates or updates a Secret of the agent's namespace.
func (c *Cluster) Store(ctx context.Context, secret *corev1.Secret) error {
	return store(ctx, c.Secrets, "secret", secret)
}

// Replace updates a Secret of the agent's namespace in the given version. It fails if the version
// has changed.
func (c *Cluster) Replace(ctx context.Context, secret *corev1.Secret) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if _, err := c.Secrets.Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("replacing secret %s/%s: %w", c.Namespace, secret.Name, err)
	}
	return nil
}

// keySeed is the key of the Secret with the agent's key.
const keySeed = "key"

// ErrUnusableKey means that the Secret of the agent's key holds no key.
var ErrUnusableKey = errors.New("it holds no key of an agent")

// AgentKey returns the key of the agent, and creates it at the first call. It returns errors of the
// API server, and ErrUnusableKey.
func (c *Cluster) AgentKey(ctx context.Context) (*credential.AgentKey, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	name := c.Namespace + "/" + naming.AgentKeySecret
	secret, err := c.Secrets.Get(ctx, naming.AgentKeySecret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		newKey, err := credential.NewAgentKey()
		if err != nil {
			return nil, err
		}
		secret = &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: naming.AgentKeySecret},
			Type:       corev1.SecretTypeOpaque, Data: map[string][]byte{keySeed: newKey.Seed()},
		}
		if secret, err = c.Secrets.Create(ctx, secret, metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
			secret, err = c.Secrets.Get(ctx, naming.AgentKeySecret, metav1.GetOptions{}) // another process has created it
		}
		if err != nil {
			return nil, fmt.Errorf("making secret %s: %w", name, err)
		}
	} else if err != nil {
		return nil, fmt.Errorf("reading secret %s: %w", name, err)
	}
	key, err := credential.ParseAgentKey(secret.Data[keySeed])
	if err != nil {
		return nil, fmt.Errorf("secret %s: %w: %w: delete it, and approve the request of this cluster on the hub", name, ErrUnusableKey, err)
	}
	return &key, nil
}

// ReadConfigMap reads a ConfigMap of the agent's namespace; nil if there is none.
func (c *Cluster) ReadConfigMap(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	configMap, err := c.ConfigMaps.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // there is none
	case err != nil:
		return nil, fmt.Errorf("reading configmap %s/%s: %w", c.Namespace, name, err)
	}
	return configMap, nil
}

// StoreConfigMap creates or updates a ConfigMap of the agent's namespace.
func (c *Cluster) StoreConfigMap(ctx context.Context, configMap *corev1.ConfigMap) error {
	return store(ctx, c.ConfigMaps, "configmap", configMap)
}

func store[T kubeclient.Object, L runtime.Object](ctx context.Context, objects *kubeclient.Resource[T, L], kind string, object T) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := objects.Create(ctx, object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = objects.Update(ctx, object, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("storing %s %s/%s: %w", kind, object.GetNamespace(), object.GetName(), err)
	}
	return nil
}

// DeleteBootstrapSecret deletes the registration token in the given version. A missing Secret is no
// error; another one in its place stays.
func (c *Cluster) DeleteBootstrapSecret(ctx context.Context, version string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := c.Secrets.Delete(ctx, naming.AgentBootstrapSecret, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{ResourceVersion: &version},
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting secret %s/%s: %w", c.Namespace, naming.AgentBootstrapSecret, err)
	}
	return nil
}

// ID returns the UID of namespace kube-system, the default client ID of a cluster. It queries the
// API server only until the first answer. A new session can therefore send heartbeats while the
// member's API server is down.
func (c *Cluster) ID(ctx context.Context) (string, error) {
	if id := c.id.Load(); id != nil {
		return *id, nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	namespace, err := c.namespaces.Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading namespace %s, whose UID is the client ID by default: %w", metav1.NamespaceSystem, err)
	}
	id := string(namespace.UID)
	c.id.Store(&id)
	return id, nil
}

// Version returns the version of the member's API server, such as v1.36.3.
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

// Ready returns nil if the member's API server is ready.
func (c *Cluster) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if _, err := c.raw.Get().AbsPath("/readyz").DoRaw(ctx); err != nil {
		return fmt.Errorf("asking /readyz of the member's API server: %w", err)
	}
	return nil
}
