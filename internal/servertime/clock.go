// Package servertime tells the time by the clock of an API server, which is the Date of its answers. What an API server has dated, an object or a
// token, is judged by that clock, so that nothing depends on the clock of the machine that judges, nor on somebody setting it right meanwhile.
package servertime

import (
	"net/http"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/utils/clock"
)

// tolerance is by how much an answer may contradict what is known: API servers behind one address differ a little.
const tolerance = 2 * time.Second

// Clock tells the time of an API server. As long as no answer contradicts it, that is the time of this machine.
type Clock struct {
	clock.PassiveClock
	known atomic.Pointer[moment]
}

// moment is one point in time by both clocks.
type moment struct{ here, there time.Time }

// New returns a clock that knows the machine's only.
func New(here clock.PassiveClock) *Clock { return &Clock{PassiveClock: here} }

// Now is the API server's time.
func (c *Clock) Now() time.Time { return c.At(c.PassiveClock.Now()) }

// Since is how long ago a moment of the API server's time was.
func (c *Clock) Since(there time.Time) time.Duration { return c.Now().Sub(there) }

// At is the API server's time at a moment that the machine's clock told.
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

// learn takes the time from an answer, in whole seconds, if it was given neither after the request was sent nor before the answer was there.
func (c *Clock) learn(sent, received time.Time, date string) {
	const unit = time.Second
	there, err := http.ParseTime(date)
	if err != nil || !there.Add(unit+tolerance).Before(c.At(sent)) && !there.Add(-tolerance).After(c.At(received)) {
		return
	}
	c.known.Store(&moment{here: received, there: there.Add(unit / 2)})
}

// Wrap makes all requests of a client tell the time.
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
