package kubeclient

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Config returns the configuration for the joining cluster: from the kubeconfig, else from env
// KUBECONFIG, else from the Pod's service account.
func Config(kubeconfig string) (*rest.Config, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig}
	if kubeconfig == "" {
		kubeconfig = os.Getenv(clientcmd.RecommendedConfigPathEnvVar)
		rules = &clientcmd.ClientConfigLoadingRules{Precedence: filepath.SplitList(kubeconfig)}
	}
	if kubeconfig != "" {
		config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
		if err != nil {
			return nil, fmt.Errorf("reading kubeconfig %s: %w", kubeconfig, err)
		}
		return config, nil
	}
	config, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, errors.New("--kubeconfig or env KUBECONFIG is required outside of a Pod: the kubeconfig of the cluster that joins")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the Pod's service account: %w", err)
	}
	return config, nil
}
