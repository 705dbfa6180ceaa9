package dashboard

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestNoAddressUsesUpWhatOthersNeedToSignIn(t *testing.T) {
	s, now := newReviewLimiter(), time.Now()
	accepted := 0
	for range 1000 {
		if s.accept(addressIn("192.0.2.1:4711"), now) {
			accepted++
		}
	}
	if most := reviewsEach * (atOnce + 2); accepted < reviewsEach*atOnce || accepted > most {
		t.Errorf("%d tokens of one address were asked about, want at most %d", accepted, most)
	}
	for remote, want := range map[string]bool{
		"192.0.2.1:4712": false, "[::ffff:192.0.2.1]:4713": false, "192.0.2.2:4711": true, "[2001:db8::1]:1": true, "what is this": true,
	} {
		if got := s.accept(addressIn(remote), now); got != want {
			t.Errorf("one of %s is asked about: %t", remote, got)
		}
	}
	for i := range 1000 {
		s.accept(addressIn(fmt.Sprintf("[2001:db8::%x]:1", i)), now)
	}
	if s.accept(addressIn("[2001:db8::ffff]:1"), now) {
		t.Error("a host that changes its address in its network of IPv6 goes on and on")
	}
}

func TestWhatIsKnownOfAddressesIsBounded(t *testing.T) {
	s, now := newReviewLimiter(), time.Now()
	addressOf := func(i int) netip.Addr { return addressIn(fmt.Sprintf("10.0.%d.%d:1", i/256, i%256)) }
	for i := range mostAddresses + 500 {
		s.of(networkOf(addressOf(i)), now)
	}
	if n := len(s.addresses); n != mostAddresses {
		t.Errorf("%d addresses are known", n)
	}
	if s.of(networkOf(addressOf(mostAddresses+1)), now) != s.further || s.of(networkOf(addressOf(1)), now) == s.further {
		t.Error("further addresses do not share a limit, or known ones do")
	}
	later := now.Add((atOnce + 1) * time.Second)
	if s.of(networkOf(addressOf(mostAddresses+1)), later) == s.further || len(s.addresses) != 1 {
		t.Errorf("addresses that have not asked for a while are not forgotten: %d", len(s.addresses))
	}
}

// TestRubbishOfOneAddressKeepsNobodyFromSigningIn sends from two addresses of the
// loopback interface.
func TestRubbishOfOneAddressKeepsNobodyFromSigningIn(t *testing.T) {
	r := newRig(t)
	address, admin := r.shared(), r.Account(t, "dashboard-admin", "cluster-admin")
	signIn := func(from, token string) int {
		dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		transport := &http.Transport{DialContext: func(ctx context.Context, network, to string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, to)
		}}
		defer transport.CloseIdleConnections()
		once := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			address+"/sign-in", strings.NewReader(url.Values{"token": {token}}.Encode()))
		if err != nil {
			t.Error(err)
			return 0
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		response, err := once.Do(request)
		if err != nil {
			t.Errorf("from %s: %v", from, err)
			return http.StatusTooManyRequests // so that the test does not wait for it
		}
		defer response.Body.Close()
		_, _ = io.Copy(io.Discard, response.Body) // only the status counts
		return response.StatusCode
	}
	var refused atomic.Int64
	for round := 0; refused.Load() == 0; round++ { // a slow machine sends no more in a second than may be asked
		if round == 10 {
			t.Fatal("all of it was asked about")
		}
		var all sync.WaitGroup
		for i := range 2 * reviewsEach * atOnce {
			all.Go(func() {
				if signIn("127.0.0.2", fmt.Sprintf("rubbish-%d-%d", round, i)) == http.StatusTooManyRequests {
					refused.Add(1)
				}
			})
		}
		all.Wait()
	}
	if got := signIn("127.0.0.3", admin); got != http.StatusSeeOther {
		t.Errorf("another one who signs in: %d", got)
	}
}

// TestWhoIsBehindATrustedProxyIsCountedByTheForwardedAddress sends all from one
// address, as a proxy does.
func TestWhoIsBehindATrustedProxyIsCountedByTheForwardedAddress(t *testing.T) {
	r := newRig(t)
	admin := r.Account(t, "dashboard-admin", "cluster-admin")
	for trusted, want := range map[string]int{
		"127.0.0.0/8": http.StatusOK, "": http.StatusTooManyRequests, "10.0.0.0/8": http.StatusTooManyRequests,
	} {
		s, err := NewShared(t.Context(), Options{Config: r.Config, TrustedProxies: trusted})
		r.check(err)
		address := r.serve(s)
		limit := s.authenticator.(*tokenAuthenticator).limit
		for limit.of(networkOf(addressIn("127.0.0.1")), time.Now()).TryAccept() {
		}
		for limit.of(networkOf(addressIn("198.51.100.1")), time.Now()).TryAccept() {
		}
		forged := "198.51.100.2, 198.51.100.1"
		if got := r.ask(http.MethodGet, address+"/", admin, "", "X-Forwarded-For", forged); got.status != http.StatusTooManyRequests {
			t.Errorf("with the proxies %q, one who has used up what may be asked and says to be another one: %d", trusted, got.status)
		}
		if got := r.ask(http.MethodGet, address+"/", admin, "", "X-Forwarded-For", "198.51.100.3"); got.status != want {
			t.Errorf("with the proxies %q, somebody else behind them: %d, want %d", trusted, got.status, want)
		}
	}
	if _, err := NewShared(t.Context(), Options{Config: r.Config, TrustedProxies: "ingress"}); err == nil {
		t.Error("a name of a proxy is taken for a network")
	}
}
