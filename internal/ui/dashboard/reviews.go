package dashboard

import (
	"maps"
	"net/netip"
	"sync"
	"time"

	"k8s.io/client-go/util/flowcontrol"
)

const (
	// reviewsEach and reviewsAll limit the reviews of new tokens at the API server per
	// second: for one address, and for all. Bursts may be five times as large. Behind an
	// untrusted proxy all visitors share its address, and so a quarter of the total.
	reviewsEach = 5
	reviewsAll  = 20
	atOnce      = 5
	// mostAddresses limits the addresses with a limit of their own. Further addresses share the
	// limit of one.
	mostAddresses = 1000
)

// reviewLimiter limits the reviews of unknown tokens at the API server. Visitors cannot make the
// dashboard flood it, and no address can use up the reviews of others.
type reviewLimiter struct {
	all, further flowcontrol.RateLimiter

	mu        sync.Mutex
	addresses map[netip.Prefix]*addressLimit
}

// addressLimit is the limit of an address.
type addressLimit struct {
	flowcontrol.RateLimiter
	used time.Time
}

func newReviewLimiter() *reviewLimiter {
	return &reviewLimiter{all: tokenBucket(reviewsAll), further: tokenBucket(reviewsEach), addresses: map[netip.Prefix]*addressLimit{}}
}

func tokenBucket(rate int) flowcontrol.RateLimiter {
	return flowcontrol.NewTokenBucketRateLimiter(float32(rate), rate*atOnce)
}

// accept reports whether a token from an address may be reviewed at the API server.
func (s *reviewLimiter) accept(address netip.Addr, now time.Time) bool {
	return s.of(networkOf(address), now).TryAccept() && s.all.TryAccept()
}

// of returns the limit of an address. After a while without use a limit is as good as new, and is
// dropped when room is needed.
func (s *reviewLimiter) of(address netip.Prefix, now time.Time) flowcontrol.RateLimiter {
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
		limit = &addressLimit{RateLimiter: tokenBucket(reviewsEach)}
		s.addresses[address] = limit
	}
	limit.used = now
	return limit
}

// networkOf returns an address as a network. For IPv6 it is the network of 64 bits, because one
// host can have all of its addresses.
func networkOf(address netip.Addr) netip.Prefix {
	bits := 64
	if address.Is4() {
		bits = 32
	}
	network, _ := address.Prefix(bits) // all bits of the address; none for an invalid address
	return network
}
