package cluster

import (
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfig returns a configuration with its credential inside, so that the file can be copied
// away.
func (c *Cluster) kubeconfig(who string) (*clientcmdapi.Config, error) {
	ca, err := os.ReadFile(c.pki.cert("ca"))
	if err != nil {
		return nil, fmt.Errorf("making a kubeconfig: %w", err)
	}
	credential, err := c.credential(who)
	if err != nil {
		return nil, fmt.Errorf("making a kubeconfig: %w", err)
	}
	name, user := c.dir.Name, c.dir.Name+"-"+who
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: c.state.url(), CertificateAuthorityData: ca}
	config.AuthInfos[user] = credential
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: user}
	config.CurrentContext = name
	return config, nil
}

// credential returns the administrator's token, or the certificate of a component.
func (c *Cluster) credential(who string) (*clientcmdapi.AuthInfo, error) {
	if who == admin {
		token, err := c.pki.ensureToken()
		return &clientcmdapi.AuthInfo{Token: token}, err
	}
	cert, err := os.ReadFile(c.pki.cert(who))
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(c.pki.key(who))
	if err != nil {
		return nil, err
	}
	return &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}, nil
}

func (c *Cluster) writeKubeconfigs() error {
	files := map[string]string{admin: c.dir.Kubeconfig()}
	users := []string{"controller-manager", "scheduler"}
	if c.real != nil {
		users = append(users, "kubelet", "kube-proxy")
	}
	for _, user := range users {
		files[user] = c.dir.file("pki", user+".kubeconfig")
	}
	for user, path := range files {
		config, err := c.kubeconfig(user)
		if err != nil {
			return err
		}
		data, err := clientcmd.Write(*config)
		if err != nil {
			return fmt.Errorf("encoding kubeconfig %s: %w", path, err)
		}
		if err := writeFile(path, data); err != nil {
			return err
		}
	}
	if c.options.Kubeconfig == "" {
		return nil
	}
	return c.mergeKubeconfig(c.options.Kubeconfig)
}

// mergeKubeconfig adds the cluster to a file with other clusters.
func (c *Cluster) mergeKubeconfig(path string) error {
	add, err := c.kubeconfig(admin)
	if err != nil {
		return err
	}
	config, err := clientcmd.LoadFromFile(path)
	if os.IsNotExist(err) {
		config, err = clientcmdapi.NewConfig(), nil
	}
	if err != nil {
		return fmt.Errorf("reading kubeconfig %s: %w; name another with --kubeconfig", path, err)
	}
	for name, cluster := range add.Clusters {
		config.Clusters[name] = cluster
	}
	for name, user := range add.AuthInfos {
		config.AuthInfos[name] = user
	}
	for name, context := range add.Contexts {
		config.Contexts[name] = context
	}
	config.CurrentContext = add.CurrentContext
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("writing kubeconfig %s: %w", path, err)
	}
	return nil
}
