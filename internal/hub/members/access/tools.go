package access

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/muster-fleet/muster/internal/hub/runtime/kubeconfig"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/naming"
)

// Names of tools in the annotation muster/access-for.
const (
	argoCD        = "argocd"
	flux          = "flux"
	clusterReader = "inventory"
)

// tool is a program with access to members by kubeconfigs from the hub.
type tool struct {
	name, title string
	// namespace of its Secrets; empty if the tool is off.
	namespace string
	// data returns the content of the Secret of a member.
	data func(key types.NamespacedName, k kubeconfig.Kubeconfig) (map[string][]byte, error)
}

// tools returns all tools, including inactive ones.
func tools(access settings.Access) []tool {
	return []tool{
		{argoCD, "Argo CD", access.ArgoCD, func(key types.NamespacedName, k kubeconfig.Kubeconfig) (map[string][]byte, error) {
			return argoCDCluster(naming.ClusterProfile(key.Namespace, key.Name), access.ArgoCDProject, k)
		}},
		{flux, "Flux", access.Flux, kubeconfigFile},
		{clusterReader, "The reader of ClusterProfiles", access.Inventory, kubeconfigFile},
	}
}

func (t tool) secretName(key types.NamespacedName) string {
	return naming.AccessSecret(t.name, key.Namespace, key.Name)
}

// argoCDCluster returns the data of a cluster Secret, as the section Clusters of
// https://argo-cd.readthedocs.io/en/stable/operator-manual/declarative-setup/ defines it.
func argoCDCluster(name, project string, k kubeconfig.Kubeconfig) (map[string][]byte, error) {
	type tlsClientConfig struct {
		Insecure   bool   `json:"insecure"`
		ServerName string `json:"serverName,omitempty"`
		CAData     []byte `json:"caData,omitempty"`
		CertData   []byte `json:"certData,omitempty"`
		KeyData    []byte `json:"keyData,omitempty"`
	}
	tls := k.Config.TLSClientConfig
	config, err := json.Marshal(struct {
		BearerToken     string          `json:"bearerToken,omitempty"`
		TLSClientConfig tlsClientConfig `json:"tlsClientConfig"`
	}{k.Config.BearerToken, tlsClientConfig{tls.Insecure, tls.ServerName, tls.CAData, tls.CertData, tls.KeyData}})
	if err != nil {
		return nil, err
	}
	data := map[string][]byte{"name": []byte(name), "server": []byte(server(k)), "config": config}
	if project != "" {
		data["project"] = []byte(project)
	}
	return data, nil
}

// kubeconfigFile returns the data of a kubeconfig Secret for Flux, with its default key, value:
// https://fluxcd.io/flux/components/kustomize/kustomizations/#kubeconfig-remote-clusters. The
// plugin kubeconfig-secretreader of the Cluster Inventory API reads the same form. The file has one
// context and nothing else of the original.
func kubeconfigFile(key types.NamespacedName, k kubeconfig.Kubeconfig) (map[string][]byte, error) {
	name, tls := naming.ClusterProfile(key.Namespace, key.Name), k.Config.TLSClientConfig
	config := clientcmdapi.NewConfig()
	config.CurrentContext = name
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.Clusters[name] = &clientcmdapi.Cluster{
		Server: server(k), TLSServerName: tls.ServerName, InsecureSkipTLSVerify: tls.Insecure, CertificateAuthorityData: tls.CAData,
	}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{
		Token: k.Config.BearerToken, ClientCertificateData: tls.CertData, ClientKeyData: tls.KeyData,
	}
	file, err := clientcmd.Write(*config)
	return map[string][]byte{kubeconfig.Key: file}, err
}

func server(k kubeconfig.Kubeconfig) string { return strings.TrimSuffix(k.Server, "/") }

// ownNames lead to the cluster of the tool itself. A member's kubeconfig may not replace them.
var ownNames = []string{
	"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
}

// refusal returns the reason why no tool may use a valid kubeconfig, or "".
func (c *Controller) refusal(k kubeconfig.Kubeconfig) string {
	config := c.Config.Current()
	hubs := []string{config.APIServerURL}
	if c.Hub != nil {
		hubs = append(hubs, c.Hub.Host)
	}
	isHub := func(hub string) bool { return hub != "" && authority(hub) == authority(k.Server) }
	parsed, err := url.Parse(k.Server)
	switch {
	case err != nil:
		return "its server is not an address"
	case slices.ContainsFunc(hubs, isHub), slices.Contains(ownNames, strings.ToLower(parsed.Hostname())):
		return "the kubeconfig leads to the hub itself, or to the cluster of the tool: give the member a kubeconfig of its own cluster"
	case !isZero(k.Config.Impersonate):
		return "the kubeconfig acts as another user, and not every tool can do that: give it the credential of that user"
	}
	if err := kubeconfig.CheckLiteral(k.Server, config.ImportLoopback); err != nil {
		return err.Error()
	}
	return ""
}

func isZero(as rest.ImpersonationConfig) bool {
	return as.UserName == "" && as.UID == "" && len(as.Groups) == 0 && len(as.Extra) == 0
}

// authority returns host and port of a URL.
func authority(text string) string {
	parsed, err := url.Parse(text)
	if err != nil {
		return text
	}
	return strings.ToLower(parsed.Hostname()) + ":" + cmp.Or(parsed.Port(), "443")
}
