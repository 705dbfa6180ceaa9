package selfimport

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
)

// Names of the local cluster's objects, as upstream.
const (
	// ClusterName is the name of the Cluster.
	ClusterName = "local"
	secretName  = "local-cluster"
	groupName   = "default"
	// labelName is the label in the selector of upstream's ClusterGroup.
	labelName = "name"
	// accountName is the ServiceAccount in the hub's system namespace for the installation of the
	// agent; the chart creates it.
	accountName = "fleet-controller-bootstrap"
)

// desired returns the Cluster according to the settings; all other fields are the users'.
func desired(found *fleet.Cluster, wanted settings.Bootstrap) *fleet.Cluster {
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: wanted.Namespace, Name: ClusterName}}
	if found != nil {
		cluster = found.DeepCopy()
	}
	labels := maps.Clone(wanted.ClusterLabels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[labelName] = ClusterName
	for key, value := range labels {
		metav1.SetMetaDataLabel(&cluster.ObjectMeta, key, value)
	}
	cluster.Spec.AgentNamespace, cluster.Spec.AgentTolerations, cluster.Spec.KubeConfigSecret = wanted.AgentNamespace,
		wanted.AgentTolerations, secretName
	if wanted.LocalAgentDisabled {
		cluster.Spec.KubeConfigSecret = ""
	}
	return cluster
}

// group returns upstream's ClusterGroup beside the Cluster.
func group(namespace string) *fleet.ClusterGroup {
	return &fleet.ClusterGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: groupName},
		Spec:       fleet.ClusterGroupSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{labelName: ClusterName}}},
	}
}

// kubeconfigSecret returns the Secret for the importer. It includes the hub's own address, because
// the agent is in the same cluster and need not use the address for members.
func kubeconfigSecret(namespace string, hub *rest.Config, token string) (*corev1.Secret, error) {
	hub = rest.CopyConfig(hub)
	if err := rest.LoadTLSFiles(hub); err != nil {
		return nil, fmt.Errorf("reading the CA of the hub's own API server: %w", err)
	}
	const name = "default"
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["cluster"] = &clientcmdapi.Cluster{Server: hub.Host, CertificateAuthorityData: hub.CAData}
	kubeconfig.AuthInfos["user"] = &clientcmdapi.AuthInfo{Token: token}
	kubeconfig.Contexts[name] = &clientcmdapi.Context{Cluster: "cluster", AuthInfo: "user"}
	kubeconfig.CurrentContext = name
	value, err := clientcmd.Write(*kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("writing a kubeconfig: %w", err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secretName, Labels: map[string]string{fleet.LabelManaged: "true"}},
		Data:       map[string][]byte{"value": value, "apiServerURL": []byte(hub.Host), "apiServerCA": hub.CAData},
	}, nil
}
