package importer

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"

	"github.com/muster-fleet/muster/internal/hub/runtime/kubeconfig"
)

// control returns the net.Dialer.Control for a server. It checks an address after the name
// resolution, and so treats names and addresses alike. The hub's own address and the
// administrator's proxy may be loopback addresses.
func (c *Controller) control(server string) func(string, string, syscall.RawConn) error {
	loopback := c.Config.Current().ImportLoopback || c.Hub != nil && strings.TrimSuffix(server, "/") == strings.TrimSuffix(c.Hub.Host, "/")
	if parsed, err := url.Parse(server); err == nil && !loopback {
		proxy, err := http.ProxyFromEnvironment(&http.Request{URL: parsed})
		loopback = err == nil && proxy != nil
	}
	return func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("reading the address %s: %w", address, err)
		}
		return kubeconfig.CheckAddress(to.Addr(), loopback)
	}
}
