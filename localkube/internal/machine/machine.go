// Package machine makes a machine within this one, for the node of one cluster: a network, process
// ids and mounts of its own, and a cgroup.
//
// A first process holds the namespaces, and ends with localkube, for any cause. The kernel then
// kills every process in its namespace of process ids. It drops the mounts with the last process,
// and after that the network with its addresses, links and iptables rules.
//
// The kernel leaves an empty cgroup, the bridge between the machines and this one, and empty
// directories for mounts. Halt removes them, and Remove does so after a killed localkube.
package machine

import (
	"net/netip"
	"os"
	"os/exec"

	"github.com/muster-fleet/muster/localkube/internal/process"
)

// Network is the network of the machines; this machine has the address Gateway.
var (
	Network = netip.MustParsePrefix("10.213.0.0/16")
	Gateway = netip.MustParseAddr("10.213.0.1")
)

// KubeletRoot is kubelet's root directory in every machine.
const KubeletRoot = "/var/lib/kubelet"

// InitCommand is the sub-command of localkube that calls Init with its argument.
const InitCommand = "machine-init"

// idLength is the length of the part of an ID in a link's name: the kernel allows 15 characters.
const idLength = 12

// Config describes a machine.
type Config struct {
	// ID is unique among all machines; letters and digits, 12 at least.
	ID      string
	Address netip.Addr
	// Kubelet is the directory behind KubeletRoot in the machine, because names of sockets must be
	// short.
	Kubelet string
	// Group starts the first process; its errors go to Log.
	Group *process.Group
	Log   *os.File
}

// Machine is a running machine.
type Machine struct {
	id     string
	init   *process.Process
	starts chan<- startRequest
}

type startRequest struct {
	cmd  *exec.Cmd
	done chan error
}

// Done is closed after the machine and all its processes have ended.
func (m *Machine) Done() <-chan struct{} { return m.init.Done() }

// CgroupRoot returns the cgroup of a machine with a kubelet's name for it.
func CgroupRoot(id string) string { return "/" + cgroupParent + "/" + id }

// LinkName returns the name of a machine's network link on this machine.
func LinkName(id string) string { return "lk" + id[:idLength] }
