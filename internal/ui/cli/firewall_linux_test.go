package cli

import (
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// droppingPackets returns an address with a full queue of connections. It drops packets of new
// connections like a firewall.
func droppingPackets(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(bound.(*syscall.SockaddrInet4).Port))
	for range 10 {
		queued, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return address
		}
		t.Cleanup(func() { _ = queued.Close() })
	}
	t.Fatal("the queue is never full")
	return ""
}

func TestAFirewallThatDropsPacketsIsNamed(t *testing.T) {
	t.Parallel()
	address := droppingPackets(t)
	server := "https://" + address
	c := &checked{access: newAccess(), config: &rest.Config{Host: server}, server: server}
	_, _, err := c.answers(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "nothing accepts connections at "+address+": ") ||
		!strings.HasSuffix(err.Error(), "check for a firewall in between") {
		t.Errorf("it says %v", err)
	}
}
