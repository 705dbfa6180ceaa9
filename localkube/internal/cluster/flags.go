package cluster

import (
	"net"
	"strconv"
)

const (
	loopback             = "127.0.0.1"
	documentationAddress = "192.0.2.1" // RFC 5737: never a real machine
	serviceNetwork       = "10.96.0.0/16"
	firstServiceAddress  = "10.96.0.1"
)

// auditPolicy logs every request once, after it is answered.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// unneededControllers have nothing to do in any cluster here.
const unneededControllers = "*,-nodeipam,-cloud-node-lifecycle,-node-route-controller,-service-lb-controller," +
	"-bootstrap-signer-controller,-token-cleaner-controller"

// hostNodeControllers are the controllers of a cluster with a host node. Some of the others need
// parts missing on a host node: volumes, a cloud, pod networks. The rest would fail forever: pods
// have loopback addresses, and Kubernetes refuses them in Endpoints and EndpointSlices.
const hostNodeControllers = unneededControllers +
	",-endpoints-controller,-endpointslice-controller,-endpointslice-mirroring-controller," +
	"-persistentvolume-binder-controller,-persistentvolume-attach-detach-controller,-persistentvolume-expander-controller"

func (c *Cluster) etcdFlags() []string {
	return []string{
		"--data-dir=" + c.dir.file("etcd"),
		"--listen-client-url=" + c.etcdURL(),
		"--cert-file=" + c.pki.cert("etcd"),
		"--key-file=" + c.pki.key("etcd"),
		"--trusted-ca-file=" + c.pki.cert("etcd-ca"),
	}
}

func (c *Cluster) apiserverFlags() []string {
	flags := []string{
		"--etcd-servers=" + c.etcdURL(),
		"--etcd-cafile=" + c.pki.cert("etcd-ca"),
		"--etcd-certfile=" + c.pki.cert("etcd-client"),
		"--etcd-keyfile=" + c.pki.key("etcd-client"),
		"--bind-address=" + c.state.address(),
		"--secure-port=" + strconv.Itoa(c.state.Port),
		"--advertise-address=" + c.advertiseAddress(),
		"--tls-cert-file=" + c.pki.cert("apiserver"),
		"--tls-private-key-file=" + c.pki.key("apiserver"),
		"--client-ca-file=" + c.pki.cert("ca"),
		"--token-auth-file=" + c.pki.tokens(),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.pki.key("service-account"),
		"--service-account-signing-key-file=" + c.pki.key("service-account"),
		"--authorization-mode=Node,RBAC",
		"--service-cluster-ip-range=" + serviceNetwork,
		"--allow-privileged=true",
		"--profiling=false",
		"--kubelet-client-certificate=" + c.pki.cert("node-client"),
		"--kubelet-client-key=" + c.pki.key("node-client"),
		"--kubelet-certificate-authority=" + c.pki.cert("node-ca"),
		"--kubelet-preferred-address-types=InternalIP",
	}
	if c.options.Audit {
		flags = append(flags,
			"--audit-policy-file="+c.dir.file("audit-policy.yaml"),
			"--audit-log-path="+c.dir.file("audit.log"),
			"--audit-log-maxsize=1024")
	}
	if c.options.Authentication != "" {
		flags = append(flags, "--authentication-config="+c.options.Authentication)
	}
	return flags
}

func (c *Cluster) controllerManagerFlags() []string {
	controllers := hostNodeControllers
	if c.real != nil {
		controllers = unneededControllers
	}
	flags := []string{
		"--kubeconfig=" + c.dir.file("pki", "controller-manager.kubeconfig"),
		"--secure-port=0",
		"--leader-elect=false",
		"--use-service-account-credentials",
		"--controllers=" + controllers,
		"--root-ca-file=" + c.pki.cert("ca"),
		"--service-account-private-key-file=" + c.pki.key("service-account"),
		"--cluster-signing-cert-file=" + c.pki.cert("ca"),
		"--cluster-signing-key-file=" + c.pki.key("ca"),
		"--profiling=false",
	}
	if !c.options.DefaultLimits {
		flags = append(flags, "--kube-api-qps=200", "--kube-api-burst=400")
	}
	return flags
}

func (c *Cluster) schedulerFlags() []string {
	return []string{
		"--kubeconfig=" + c.dir.file("pki", "scheduler.kubeconfig"),
		"--secure-port=0",
		"--leader-elect=false",
		"--profiling=false",
	}
}

func (c *Cluster) etcdURL() string {
	return "https://" + net.JoinHostPort(loopback, strconv.Itoa(c.etcdPort))
}
