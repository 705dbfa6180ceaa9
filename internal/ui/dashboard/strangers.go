package dashboard

import (
	"maps"
	"net/netip"
	"sync"
	"time"

	"k8s.io/client-go/util/flowcontrol"
)

const (
	// strangersEach and strangersAll are how many tokens that are new the API server is asked about in
	// a second, of one address and of all; five times as many at once. Behind a proxy that is not
	// trusted all have its address, and a quarter has to do for them.
	strangersEach = 5
	strangersAll  = 20
	atOnce        = 5
	// mostAddresses is of how many addresses it is known how often they have asked; further ones
	// share what one may.
	mostAddresses = 1000
)

// strangers bounds how often the API server is asked about tokens that nobody knows yet, so that
// nobody can make the dashboard flood it, and no address can use up what others need to sign in.
type strangers struct {
	all, further flowcontrol.RateLimiter

	mu        sync.Mutex
	addresses map[netip.Prefix]*addressLimit
}

// addressLimit is that of an address.
type addressLimit struct {
	flowcontrol.RateLimiter
	used time.Time
}

func newStrangers() *strangers {
	return &strangers{all: tokenBucket(strangersAll), further: tokenBucket(strangersEach), addresses: map[netip.Prefix]*addressLimit{}}
}

func tokenBucket(rate int) flowcontrol.RateLimiter {
	return flowcontrol.NewTokenBucketRateLimiter(float32(rate), rate*atOnce)
}

// accept says whether the API server may be asked about a token that came from an address.
func (s *strangers) accept(address netip.Addr, now time.Time) bool {
	return s.of(networkOf(address), now).TryAccept() && s.all.TryAccept()
}

// of is the limit of an address. One that was not used for a while is as good as new, and forgotten
// when room is needed.
func (s *strangers) of(address netip.Prefix, now time.Time) flowcontrol.RateLimiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.addresses) >= mostAddresses && s.addresses[address] == nil {
		maps.DeleteFunc(s.addresses, func(_ netip.Prefix, l *addressLimit) bool { return now.Sub(l.used) > atOnce*time.Second })
	}
	limit := s.addresses[address]
	if limit == nil {
		if len(s.addresses) >= mostAddresses {
			return s.further
		}
		limit = &addressLimit{RateLimiter: tokenBucket(strangersEach)}
		s.addresses[address] = limit
	}
	limit.used = now
	return limit
}

// networkOf is an address as a network; of IPv6 the network of 64 bits, of which one host can
// have all addresses.
func networkOf(address netip.Addr) netip.Prefix {
	bits := 64
	if address.Is4() {
		bits = 32
	}
	network, _ := address.Prefix(bits) // as many bits as such an address has; none of what is no address
	return network
}
