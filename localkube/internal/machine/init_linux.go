package machine

import (
	"fmt"
	"os"
	"os/signal"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// initReady is the output of the first process once the machine is prepared.
const initReady = "ready"

// mountPoints are the directories that a machine has for itself. A container runtime or a kubelet
// writes to them regardless of its configuration. The last one is the kubelet's own directory.
var mountPoints = []string{"/run/containerd", "/var/lib/cni", "/var/log/containers", KubeletRoot}

// Init is the first process of a machine. It prepares the machine from within, reports this, and
// then only reaps dead processes.
func Init(kubelet string) int {
	died := make(chan os.Signal, 1)
	signal.Notify(died, unix.SIGCHLD)
	if err := prepare(kubelet); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(initReady)
	// The parent has read; keeping the pipe would only hold it open.
	_ = os.Stdout.Close()
	for range died {
		for {
			pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
			if err == unix.EINTR {
				continue
			}
			if err != nil || pid <= 0 {
				break
			}
		}
	}
	return 0
}

func prepare(kubelet string) error {
	// Later mounts are invisible outside, but containers may request mounts shared with the node's.
	for _, propagation := range []uintptr{unix.MS_PRIVATE, unix.MS_SHARED} {
		if err := unix.Mount("", "/", "", unix.MS_REC|propagation, ""); err != nil {
			return fmt.Errorf("separating the mounts: %w", err)
		}
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	for _, path := range mountPoints {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return fmt.Errorf("making a mount point: %w", err)
		}
		source, kind, flags, data := "tmpfs", "tmpfs", uintptr(unix.MS_NOSUID|unix.MS_NODEV), "mode=0755"
		if path == KubeletRoot {
			source, kind, flags, data = kubelet, "", unix.MS_BIND, ""
		}
		if err := unix.Mount(source, path, kind, flags, data); err != nil {
			return fmt.Errorf("mounting %s: %w", path, err)
		}
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return fmt.Errorf("forwarding the pods' packets: %w", err)
	}
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("finding the loopback link: %w", err)
	}
	if err := netlink.LinkSetUp(loopback); err != nil {
		return fmt.Errorf("starting the loopback link: %w", err)
	}
	return nil
}
