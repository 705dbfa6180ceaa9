package importer

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
)

// errLocal and errLoopback refuse addresses that lead to the machine or the network of the hub, and
// to no cluster.
var (
	errLocal    = errors.New("its address is link-local, multicast or unspecified, where no cluster is")
	errLoopback = errors.New("its address is a loopback one, which leads to what runs beside the hub; the value importLoopback of the chart " +
		"fleet allows that")
)

// control returns the net.Dialer.Control for a server. It checks an address after the name
// resolution, so that it treats names and addresses alike. The hub's own address and the
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
		return checkAddress(to.Addr(), loopback)
	}
}

// checkLiteral refuses a server given by a forbidden address, even if a proxy would dial it.
func checkLiteral(server string) error {
	parsed, err := url.Parse(server)
	if err != nil {
		return nil //nolint:nilerr // no address
	}
	address, err := netip.ParseAddr(parsed.Hostname())
	if err != nil {
		return nil //nolint:nilerr // a name
	}
	return checkAddress(address, true)
}

// checkAddress returns an error if the hub must not dial an address; nil if it may.
func checkAddress(address netip.Addr, loopback bool) error {
	switch is := address.Unmap(); {
	case is.IsUnspecified() || is.IsLinkLocalUnicast() || is.IsMulticast():
		return errLocal
	case is.IsLoopback() && !loopback:
		return errLoopback
	}
	return nil
}
