package dashboard

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
)

// proxies are the networks with a trusted header X-Forwarded-For.
type proxies []netip.Prefix

// proxiesOf returns the proxies of a list such as 10.0.0.0/8,192.168.1.7.
func proxiesOf(list string) (networks proxies, err error) {
	for text := range strings.SplitSeq(list, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		network, err := netip.ParsePrefix(text)
		if address, isAddress := netip.ParseAddr(text); isAddress == nil {
			network, err = address.Prefix(address.BitLen())
		}
		if err != nil || network != network.Masked() {
			return nil, fmt.Errorf("invalid network of proxies %q: write for example 10.0.0.0/8", text)
		}
		networks = append(networks, network)
	}
	return networks, nil
}

func (p proxies) trusts(address netip.Addr) bool {
	for _, network := range p {
		if network.Contains(address) {
			return true
		}
	}
	return false
}

// addressOf returns the address of a request: the last one before the trusted proxies. Each proxy
// adds its client to X-Forwarded-For. Entries before an untrusted address may therefore be
// forged.
func (p proxies) addressOf(r *http.Request) netip.Addr {
	from := addressIn(r.RemoteAddr)
	said := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(said) - 1; i >= 0 && p.trusts(from); i-- {
		before := addressIn(strings.TrimSpace(said[i]))
		if !before.IsValid() {
			break
		}
		from = before
	}
	return from
}

// addressIn returns an address with a port or without; invalid for other texts.
func addressIn(text string) netip.Addr {
	address, err := netip.ParseAddr(text)
	if with, errPort := netip.ParseAddrPort(text); errPort == nil {
		address, err = with.Addr(), nil
	}
	if err != nil {
		return netip.Addr{}
	}
	return address.Unmap().WithZone("")
}
