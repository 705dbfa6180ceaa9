package hostnode

import (
	"fmt"
	"net/netip"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// addresses gives every pod a loopback address of its own. Two pods that listen on their own
// addresses therefore do not compete for a port.
type addresses struct {
	mu      sync.Mutex
	network [3]byte
	next    byte
	holders map[netip.Addr]types.UID
}

func newAddresses(network [3]byte) *addresses {
	return &addresses{network: network, next: 1, holders: map[netip.Addr]types.UID{}}
}

// take returns the wanted address if it is free and in this network. Otherwise it returns the free
// address with the longest time out of use.
func (a *addresses) take(uid types.UID, wanted string) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if address, err := netip.ParseAddr(wanted); err == nil && address.Is4() {
		if b := address.As4(); [3]byte(b[:3]) == a.network && a.free(address, uid) {
			a.holders[address] = uid
			return address.String(), nil
		}
	}
	for range 254 {
		address := netip.AddrFrom4([4]byte{a.network[0], a.network[1], a.network[2], a.next})
		a.next = a.next%254 + 1
		if a.free(address, uid) {
			a.holders[address] = uid
			return address.String(), nil
		}
	}
	return "", fmt.Errorf("all addresses of %d.%d.%d.0/24 are taken; delete pods", a.network[0], a.network[1], a.network[2])
}

func (a *addresses) free(address netip.Addr, uid types.UID) bool {
	holder, held := a.holders[address]
	return !held || holder == uid
}

func (a *addresses) release(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for address, holder := range a.holders {
		if holder == uid {
			delete(a.holders, address)
		}
	}
}
