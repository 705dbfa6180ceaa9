// Package hubclient is what an agent, and the program that delivers for it, need to talk to their
// hub: the route and whom to trust on it, the credential and the form in which a member keeps it,
// the session, what may be read and written in a member namespace, and what an error means.
//
// Its invariant: a token goes to the hub's host only and never into a message; a result that costs
// the agent its credential is drawn only from what a Kubernetes API server said over a verified
// connection, and only when it persists. With mode strict only the given CA counts; verification is
// skipped only with mode insecure, which no default leads to.
package hubclient

import (
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kubeclient"
	"github.com/muster-fleet/muster/internal/servertime"
	"github.com/muster-fleet/muster/internal/version"
)

const (
	// timeout bounds each request that is not a watch.
	timeout = 10 * time.Second
	// dialTimeout is shorter, so that a dead address is named within one request.
	dialTimeout = 5 * time.Second
)

// Registrations are the requests in a workspace.
type Registrations = kubeclient.Resource[*fleet.ClusterRegistration, *fleet.ClusterRegistrationList]

// Target is a hub.
type Target struct {
	// Server is the URL, as credential.ParseServer returns it.
	Server string
	// CA is PEM, as credential.ParseCA returns it.
	CA []byte
	// Trust says whether anything but the CA counts.
	Trust Trust
}

// Hub is a connection with a token that can be exchanged, and a route that can be changed,
// while watches go on.
type Hub struct {
	// origin is the URL that requests are made for; each goes by the route in force when it is sent.
	origin     *url.URL
	route      atomic.Pointer[route]
	clock      *servertime.Clock
	connection *kubeclient.Connection
	token      atomic.Pointer[string]
}

// Dial prepares a connection; nothing is sent yet.
func Dial(target Target, token string, clk clock.PassiveClock) (*Hub, error) {
	first, err := newRoute(target)
	if err != nil {
		return nil, err
	}
	h := &Hub{origin: first.base, clock: servertime.New(clk)}
	h.route.Store(first)
	h.SetToken(token)
	h.connection, err = kubeclient.Connect(h.Config())
	return h, err
}

// Config is for clients of other libraries, which then use the token and the route in force.
func (h *Hub) Config() *rest.Config {
	return &rest.Config{Host: h.origin.String(), Transport: h, UserAgent: "muster-agent/" + version.Version}
}

// Move makes all requests from now on go to where the other connection goes, with its trust. A
// request under way ends where it began.
func (h *Hub) Move(to *Hub) { h.route.Swap(to.route.Load()).transport.CloseIdleConnections() }

// SetToken makes all requests from now on show this token.
func (h *Hub) SetToken(token string) { h.token.Store(&token) }

// Target is where requests go.
func (h *Hub) Target() Target { return h.route.Load().target }

// Server is the URL.
func (h *Hub) Server() string { return h.Target().Server }

// Now is the time by the hub's clock; the times in the hub's tokens are by that clock.
func (h *Hub) Now() time.Time { return h.clock.Now() }

// Close ends idle connections.
func (h *Hub) Close() { h.route.Load().transport.CloseIdleConnections() }

// Registrations is the client for the requests in a workspace.
func (h *Hub) Registrations(workspace string) (*Registrations, error) {
	return kubeclient.Of[fleet.ClusterRegistration, fleet.ClusterRegistrationList](
		h.connection, fleet.GroupVersion.WithResource("clusterregistrations"), workspace)
}

// RoundTrip sends the request where the hub is, adds the token and reads the hub's clock.
func (h *Hub) RoundTrip(request *http.Request) (*http.Response, error) {
	current := h.route.Load()
	if request.URL.Host == h.origin.Host {
		request = current.direct(request, h.origin)
		request.Header.Set("Authorization", "Bearer "+*h.token.Load())
	}
	return h.clock.Ask(current.transport, request)
}

// WrappedRoundTripper lets client-go unwrap the transport.
func (h *Hub) WrappedRoundTripper() http.RoundTripper { return h.route.Load().transport }
