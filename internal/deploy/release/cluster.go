// Package release installs, upgrades and removes Helm releases, and finds existing ones.
//
// Its invariant: the history of a release is in the namespace of the release, as with Helm and
// upstream agents. Each agent can therefore continue the other's releases. An interrupted operation
// is resumed, never left pending.
package release

import (
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/storage"
	"helm.sh/helm/v4/pkg/storage/driver"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"

	"github.com/muster-fleet/muster/internal/kubeclient"
)

// FieldManager is the field manager of deployed objects.
const FieldManager = "muster-deployer"

func init() { kube.ManagedFieldsManager = FieldManager }

// Cluster is the cluster of the releases.
type Cluster struct {
	// AgentNamespace is the namespace of the agent. Earlier versions kept the histories in it.
	AgentNamespace string
	// Kube, Dynamic, Metadata and Mapper act as the agent.
	Kube     kubernetes.Interface
	Dynamic  dynamic.Interface
	Metadata metadata.Interface
	Mapper   meta.ResettableRESTMapper
	// Agent is the own release of the agent; by default the release fleet-agent in its namespace.
	Agent Agent
	// HookWait bounds one wait for a hook during an uninstall; defaults to five minutes. The hook
	// continues, and the next attempt waits for it again.
	HookWait time.Duration

	config    *rest.Config
	discovery discovery.CachedDiscoveryInterface
	// live queries the API server for the served kinds each time.
	live  discovery.DiscoveryInterface
	names *names
	// kinds is the discovery cache of the mapper.
	kinds *expiringDiscovery
	// accounts are the clusters from As.
	accounts *accounts
	// installed is set on the cluster from asHelm.
	installed *installed
	// agent is the UID of the agent's Deployment, once seen. This process ends with it.
	agent *atomic.Pointer[types.UID]
}

// accounts are the clusters with the rights of one account each, by name. Each has clients for all
// kinds: a new one for each compared object would cost more than the comparison.
type accounts struct {
	mu     sync.Mutex
	byName map[string]*Cluster
}

// NewCluster prepares access without sending a request.
func NewCluster(config *rest.Config, agentNamespace string) (*Cluster, error) {
	config = kubeclient.Unlimited(config)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to %s: %w", config.Host, err)
	}
	own := Agent{ID: ID{agentNamespace, agentRelease}, Chart: agentRelease, Deployment: agentRelease}
	c := &Cluster{AgentNamespace: agentNamespace, Agent: own, config: config,
		names: &names{reserved: map[ID]string{}}, accounts: newAccounts(),
		agent: &atomic.Pointer[types.UID]{}}
	if err := c.clients(client); err != nil {
		return nil, err
	}
	found, err := discovery.NewDiscoveryClientForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("preparing the discovery client of %s: %w", config.Host, err)
	}
	c.live, c.discovery = found, memory.NewMemCacheClient(found)
	// Helm empties the cache now and then without resetting the mapper. The mapper queries again for a
	// missing kind.
	c.kinds = &expiringDiscovery{CachedDiscoveryInterface: c.discovery, clock: clock.RealClock{}}
	c.Mapper = restmapper.NewDeferredDiscoveryRESTMapper(c.kinds)
	return c, nil
}

func (c *Cluster) clients(client *http.Client) error {
	var err error
	if c.Kube, err = kubernetes.NewForConfigAndClient(c.config, client); err != nil {
		return fmt.Errorf("preparing the clients of %s: %w", c.config.Host, err)
	}
	if c.Dynamic, err = dynamic.NewForConfigAndClient(c.config, client); err != nil {
		return fmt.Errorf("preparing the dynamic client of %s: %w", c.config.Host, err)
	}
	if c.Metadata, err = metadata.NewForConfigAndClient(c.config, client); err != nil {
		return fmt.Errorf("preparing the metadata client of %s: %w", c.config.Host, err)
	}
	return nil
}

// As returns the cluster with the rights of an account in the agent's namespace, to confine a
// Bundle. It shares the agent's discovery cache.
func (c *Cluster) As(account string) (*Cluster, error) {
	if account == "" {
		return c, nil
	}
	c.accounts.mu.Lock()
	defer c.accounts.mu.Unlock()
	if made := c.accounts.byName[account]; made != nil {
		return made, nil
	}
	as := *c
	as.config = rest.CopyConfig(c.config)
	as.config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + c.AgentNamespace + ":" + account}
	client, err := rest.HTTPClientFor(as.config)
	if err != nil {
		return nil, fmt.Errorf("preparing to act as service account %s: %w", account, err)
	}
	if err := as.clients(client); err != nil {
		return nil, err
	}
	c.accounts.byName[account] = &as
	return &as, nil
}

func newAccounts() *accounts { return &accounts{byName: map[string]*Cluster{}} }

// configuration returns Helm's configuration for a namespace. The agent reads and writes histories,
// acting the objects.
func (c *Cluster) configuration(acting *Cluster, namespace, histories string, maxHistory int) *action.Configuration {
	getter := &getter{cluster: c, config: rest.CopyConfig(acting.config), namespace: namespace}
	client := kube.New(getter)
	client.Namespace = namespace
	client.SetLogger(slog.DiscardHandler)
	secrets := driver.NewSecrets(c.Kube.CoreV1().Secrets(histories))
	secrets.SetLogger(slog.DiscardHandler)
	releases := storage.Init(secrets)
	releases.MaxHistory = maxHistory
	releases.SetLogger(slog.DiscardHandler)
	configuration := action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))
	configuration.RESTClientGetter, configuration.KubeClient, configuration.Releases = getter, client, releases
	return configuration
}

// getter gives Helm the shared discovery cache.
type getter struct {
	cluster   *Cluster
	config    *rest.Config
	namespace string
}

func (g *getter) ToRESTConfig() (*rest.Config, error) { return g.config, nil }

func (g *getter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return g.cluster.discovery, nil
}

func (g *getter) ToRESTMapper() (meta.RESTMapper, error) { return g.cluster.Mapper, nil }

func (g *getter) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	overrides := &clientcmd.ConfigOverrides{Context: clientcmdapi.Context{Namespace: g.namespace}}
	return clientcmd.NewDefaultClientConfig(clientcmdapi.Config{}, overrides)
}
