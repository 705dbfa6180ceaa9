package cluster

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// The API server's port is kept, also while the cluster is down. It lies below the range of ports
// for outgoing connections, so that no connection takes it meanwhile.
const (
	firstLastingPort = 16000
	lastingPorts     = 16000
	portAttempts     = 100
	// usualPort is the port of an API server with an address to itself.
	usualPort = 6443
)

// freePort returns the given port, or a lasting one for 0.
func freePort(port int) (int, error) {
	if port == 0 {
		return lastingPort()
	}
	if err := checkPortFree(port); err != nil {
		return 0, fmt.Errorf("port %d is in use by another program; choose another --port, or leave it out for a free one (%w)", port, err)
	}
	return port, nil
}

func checkPortFree(port int) error {
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("trying port %d: %w", port, err)
	}
	return listener.Close()
}

func lastingPort() (int, error) {
	for range portAttempts {
		n, err := rand.Int(rand.Reader, big.NewInt(lastingPorts))
		if err != nil {
			return 0, fmt.Errorf("choosing a port: %w", err)
		}
		port := firstLastingPort + int(n.Int64())
		if !reserved(port) && checkPortFree(port) == nil {
			return port, nil
		}
	}
	return 0, errors.New("choosing a port: none is free between 16000 and 31999; name one with --port")
}

// reservation returns the file that names the cluster with a port. Clusters of this user in other
// roots find it there while the cluster is down.
func reservation(port int) string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("localkube-ports-%d", os.Getuid()), strconv.Itoa(port))
}

// reserve notes the port of a cluster. Without the note, another cluster could take the port while
// this one is down, which is no reason not to start it.
func (d Dir) reserve(port int) {
	file := reservation(port)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err == nil {
		_ = os.WriteFile(file, []byte(d.Path), 0o600)
	}
}

// release removes the note of a cluster that is being deleted.
func (d Dir) release() {
	if s, err := d.load(); err == nil && reserved(s.Port) {
		_ = os.Remove(reservation(s.Port))
	}
}

// reserved reports whether a cluster has a port, also one that is down. The note of a deleted
// cluster does not count.
func reserved(port int) bool {
	path, err := os.ReadFile(reservation(port))
	if err != nil {
		return false
	}
	s, err := Dir{Path: string(path)}.load()
	return err == nil && s.Port == port
}

// advertiseAddress returns the address behind the kubernetes Service. Kubernetes refuses a loopback
// address there; with a host node, no client connects to it.
func (c *Cluster) advertiseAddress() string {
	if c.real != nil {
		return c.state.address()
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return documentationAddress
	}
	for _, address := range addresses {
		network, ok := address.(*net.IPNet)
		if ok && network.IP.IsGlobalUnicast() && network.IP.To4() != nil {
			return network.IP.String()
		}
	}
	return documentationAddress
}
