package kubeconfig

import (
	"errors"
	"net/netip"
	"net/url"
)

// ErrLocal and ErrLoopback refuse addresses of the hub's own machine or network.
var (
	ErrLocal    = errors.New("its address is link-local, multicast or unspecified, where no cluster is")
	ErrLoopback = errors.New("its address is a loopback one, which leads to what runs beside the hub; the value importLoopback of the chart " +
		"fleet allows that")
)

// CheckLiteral refuses a server given by a forbidden address, even if a proxy would dial it. With
// loopback it accepts loopback addresses.
func CheckLiteral(server string, loopback bool) error {
	parsed, err := url.Parse(server)
	if err != nil {
		return nil //nolint:nilerr // no address
	}
	address, err := netip.ParseAddr(parsed.Hostname())
	if err != nil {
		return nil //nolint:nilerr // a name
	}
	return CheckAddress(address, loopback)
}

// CheckAddress returns an error if the hub must not dial an address; nil if it may.
func CheckAddress(address netip.Addr, loopback bool) error {
	switch is := address.Unmap(); {
	case is.IsUnspecified() || is.IsLinkLocalUnicast() || is.IsMulticast():
		return ErrLocal
	case is.IsLoopback() && !loopback:
		return ErrLoopback
	}
	return nil
}
