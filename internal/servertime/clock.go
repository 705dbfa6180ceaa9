// Package servertime provides the time of an API server's clock, from the Date of its answers. That
// clock decides the age of everything dated by the API server, such as an object or a token.
// Nothing then depends on the clock of the local machine, or on an administrator setting it
// meanwhile.
package servertime

import (
	"net/http"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/utils/clock"
)

// tolerance is the accepted difference between an answer and the known time, because API servers
// behind one address differ a little.
const tolerance = 2 * time.Second

// Clock provides the time of an API server. Until an answer contradicts it, that is the time of
// this machine.
type Clock struct {
	clock.PassiveClock
	known atomic.Pointer[moment]
}

// moment is one point in time by both clocks.
type moment struct{ here, there time.Time }

// New returns a clock with only the time of the machine.
func New(here clock.PassiveClock) *Clock { return &Clock{PassiveClock: here} }

// Now returns the API server's time.
func (c *Clock) Now() time.Time { return c.At(c.PassiveClock.Now()) }

// Since returns the time since a moment of the API server's time.
func (c *Clock) Since(there time.Time) time.Duration { return c.Now().Sub(there) }

// At returns the API server's time at a moment of the machine's clock.
func (c *Clock) At(here time.Time) time.Time {
	if known := c.known.Load(); known != nil {
		return known.there.Add(here.Sub(known.here))
	}
	return here
}

// Ask sends a request and reads the clock of the API server in its answer.
func (c *Clock) Ask(next http.RoundTripper, request *http.Request) (*http.Response, error) {
	sent := c.PassiveClock.Now()
	response, err := next.RoundTrip(request)
	if err == nil {
		c.learn(sent, c.PassiveClock.Now(), response.Header.Get("Date"))
	}
	return response, err
}

// learn takes the time from an answer, in whole seconds. It ignores a date before the request was
// sent or after the answer was received.
func (c *Clock) learn(sent, received time.Time, date string) {
	const unit = time.Second
	there, err := http.ParseTime(date)
	if err != nil || !there.Add(unit+tolerance).Before(c.At(sent)) && !there.Add(-tolerance).After(c.At(received)) {
		return
	}
	c.known.Store(&moment{here: received, there: there.Add(unit / 2)})
}

// Wrap makes a client read the time from all its answers.
func (c *Clock) Wrap(next http.RoundTripper) http.RoundTripper { return asking{next, c} }

type asking struct {
	http.RoundTripper
	clock *Clock
}

var _ utilnet.RoundTripperWrapper = asking{}

func (a asking) RoundTrip(request *http.Request) (*http.Response, error) {
	return a.clock.Ask(a.RoundTripper, request)
}

// WrappedRoundTripper lets client-go unwrap the transport.
func (a asking) WrappedRoundTripper() http.RoundTripper { return a.RoundTripper }
