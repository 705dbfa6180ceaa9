// Package machine makes a machine within this one, for the node of one
// cluster: a network, process ids and mounts of its own, and a cgroup.
//
// A first process holds the namespaces. The kernel kills everything in a
// namespace of process ids when its first process ends, drops its mounts with
// the last process, and its network with its addresses, links and iptables
// rules after that. The first process ends with localkube, however that ends.
// What the kernel does not remove are an empty cgroup, the bridge that
// connects the machines with this one, and empty directories that were made to
// be mounted on: Halt removes them, and Remove does after a localkube that was
// killed.
package machine

import (
	"net/netip"
	"os"
	"os/exec"

	"github.com/muster-fleet/muster/localkube/internal/process"
)

// Network is where machines have their addresses; this machine has Gateway.
var (
	Network = netip.MustParsePrefix("10.213.0.0/16")
	Gateway = netip.MustParseAddr("10.213.0.1")
)

// KubeletRoot is kubelet's root directory in every machine.
const KubeletRoot = "/var/lib/kubelet"

// InitCommand is the sub-command of localkube that calls Init with
// its argument.
const InitCommand = "machine-init"

// idLength is how much of an ID names a link: the kernel allows 15 characters.
const idLength = 12

// Config describes a machine.
type Config struct {
	// ID is unique among all machines; letters and digits, 12 at least.
	ID      string
	Address netip.Addr
	// Kubelet is the directory that a kubelet in the machine finds as
	// KubeletRoot: names of sockets have to be short.
	Kubelet string
	// Group starts the first process; its errors go to Log.
	Group *process.Group
	Log   *os.File
}

// Machine is a machine that runs.
type Machine struct {
	id     string
	init   *process.Process
	starts chan<- startRequest
}

type startRequest struct {
	cmd  *exec.Cmd
	done chan error
}

// Done is closed when the machine has ended, and with it all its processes.
func (m *Machine) Done() <-chan struct{} { return m.init.Done() }

// CgroupRoot is the cgroup of a machine, as a kubelet names it.
func CgroupRoot(id string) string { return "/" + cgroupParent + "/" + id }

// LinkName is the network link of a machine, as this machine sees it.
func LinkName(id string) string { return "lk" + id[:idLength] }
