// Package kubenode configures the node of a cluster with containers: containerd, its network
// plugins, kubelet and kube-proxy. It writes files and builds command lines; its callers start them
// inside a machine of package machine.
package kubenode

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"github.com/muster-fleet/muster/localkube/internal/machine"
)

const (
	// podNetwork is the same in every machine: packets leave it with the
	// machine's address.
	podNetwork = "10.244.0.0/16"
	podSubnet  = "10.244.0.0/24"
	// socket is in a directory private to each machine.
	socket = "/run/containerd/containerd.sock"
	// clusterDNS has nothing behind it: names do not resolve in a cluster.
	clusterDNS = "10.96.0.10"
)

// Config describes a node.
type Config struct {
	Name, Address string
	// Dir is the directory of the node's files.
	Dir        string
	CgroupRoot string
	Programs   machine.Programs
	// CertFile and KeyFile are kubelet's serving certificate. ClientCAFile signs the certificates of
	// its permitted clients.
	CertFile, KeyFile, ClientCAFile string
	// Kubeconfig is the kubeconfig of kubelet, ProxyKubeconfig the kubeconfig of kube-proxy.
	Kubeconfig, ProxyKubeconfig string
}

func (c Config) file(elements ...string) string {
	return filepath.Join(append([]string{c.Dir}, elements...)...)
}

// Write writes the configuration files.
func (c Config) Write() error {
	for _, directory := range []string{c.file("net.d"), c.file("plugins"), c.file("pod-logs")} {
		if err := os.MkdirAll(directory, 0o755); err != nil {
			return fmt.Errorf("configuring node %s: %w", c.Name, err)
		}
	}
	kubelet, err := yaml.Marshal(c.kubelet())
	if err != nil {
		return fmt.Errorf("encoding the configuration of kubelet: %w", err)
	}
	network, err := json.MarshalIndent(networkList, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the configuration of the pod network: %w", err)
	}
	for path, content := range map[string][]byte{
		c.file("containerd.toml"):                []byte(c.containerd()),
		c.file("kubelet.yaml"):                   kubelet,
		c.file("net.d", "10-localkube.conflist"): network,
	} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return fmt.Errorf("configuring node %s: %w", c.Name, err)
		}
	}
	return nil
}

// containerd returns its configuration in format 2; newer releases convert it.
// restrict_oom_score_adj is for machines without CAP_SYS_RESOURCE.
func (c Config) containerd() string {
	return fmt.Sprintf(`version = 2
root = %q
state = "/run/containerd/state"
[grpc]
  address = %q
[plugins."io.containerd.internal.v1.opt"]
  path = %q
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %q
    conf_dir = %q
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
`, c.file("containerd"), socket, c.file("opt"), PauseImage, c.Programs.Plugins, c.file("net.d"))
}

// networkList is a bridge in the machine. Its packets leave with the machine's address.
var networkList = map[string]any{
	"cniVersion": "0.4.0",
	"name":       "localkube",
	"plugins": []any{
		map[string]any{
			"type": "bridge", "bridge": "pods0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
			"ipam": map[string]any{
				"type":   "host-local",
				"ranges": []any{[]any{map[string]string{"subnet": podSubnet}}},
				"routes": []any{map[string]string{"dst": "0.0.0.0/0"}},
			},
		},
		map[string]any{"type": "portmap", "capabilities": map[string]bool{"portMappings": true}},
	},
}

func (c Config) kubelet() map[string]any {
	return map[string]any{
		"apiVersion":        "kubelet.config.k8s.io/v1beta1",
		"kind":              "KubeletConfiguration",
		"address":           c.Address,
		"readOnlyPort":      0,
		"tlsCertFile":       c.CertFile,
		"tlsPrivateKeyFile": c.KeyFile,
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false},
			"webhook":   map[string]any{"enabled": false},
			"x509":      map[string]any{"clientCAFile": c.ClientCAFile},
		},
		// Only kube-apiserver has a certificate of this authority.
		"authorization":            map[string]any{"mode": "AlwaysAllow"},
		"containerRuntimeEndpoint": "unix://" + socket,
		"cgroupDriver":             "cgroupfs",
		"cgroupRoot":               c.CgroupRoot,
		"failCgroupV1":             false,
		"failSwapOn":               false,
		"clusterDomain":            "cluster.local",
		"clusterDNS":               []string{clusterDNS},
		"resolvConf":               "",
		"podLogsDir":               c.file("pod-logs"),
		"volumePluginDir":          c.file("plugins"),
		// The disk belongs to the machine around this one: its usage is no sign of this cluster's.
		"evictionHard":                map[string]any{"nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%"},
		"imageGCHighThresholdPercent": 100,
	}
}

// ContainerdArgs are the arguments of containerd.
func (c Config) ContainerdArgs() []string {
	return []string{"--config", c.file("containerd.toml")}
}

// KubeletFlags are the flags of kubelet.
func (c Config) KubeletFlags() []string {
	return []string{
		"--config=" + c.file("kubelet.yaml"),
		"--kubeconfig=" + c.Kubeconfig,
		"--root-dir=" + machine.KubeletRoot,
		"--cert-dir=" + filepath.Join(machine.KubeletRoot, "pki"),
		"--hostname-override=" + c.Name,
		"--node-ip=" + c.Address,
	}
}

// ProxyFlags are the flags of kube-proxy. It must not set connection tracking, because that is
// possible only for the whole machine.
func (c Config) ProxyFlags() []string {
	return []string{
		"--kubeconfig=" + c.ProxyKubeconfig,
		"--hostname-override=" + c.Name,
		"--proxy-mode=iptables",
		"--cluster-cidr=" + podNetwork,
		"--conntrack-max-per-core=0",
	}
}

// CtrArgs are the arguments of a ctr command on the images of the cluster.
func CtrArgs(arguments ...string) []string {
	return append([]string{"--address", socket, "--namespace", "k8s.io"}, arguments...)
}
