// Package hubclient connects an agent, and its deployer, to their hub. It has the route and its
// trust, the credential and its stored form, and the session. It also has the reads and writes in a
// member namespace, and the meaning of errors.
//
// Its invariant: a token is sent only to the hub's host, and no message contains it. Only a
// Kubernetes API server over a verified connection can cost the agent its credential, and only by a
// persistent result.
//
// Mode strict trusts only the given CA. Only mode insecure skips verification, and no default leads
// to it.
package hubclient

import (
	"crypto/tls"
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
	// timeout bounds each request except watches.
	timeout = 10 * time.Second
	// dialTimeout is shorter: one request is then enough to report a dead address.
	dialTimeout = 5 * time.Second
)

// Registrations are the requests in a workspace.
type Registrations = kubeclient.Resource[*fleet.ClusterRegistration, *fleet.ClusterRegistrationList]

// Target is a hub.
type Target struct {
	// Server is the URL in the form of credential.ParseServer.
	Server string
	// CA is PEM in the form of credential.ParseCA.
	CA []byte
	// Trust decides whether other CAs count too.
	Trust Trust
	// Certificate is the client certificate of a kubeconfig; nil without one. It stays in this
	// process.
	Certificate *tls.Certificate `json:"-"`
}

// Hub is a connection with an exchangeable token and route. Watches continue across a change of
// either.
type Hub struct {
	// origin is the URL in new requests; the current route sends each of them.
	origin     *url.URL
	route      atomic.Pointer[route]
	clock      *servertime.Clock
	connection *kubeclient.Connection
	token      atomic.Pointer[string]
}

// Dial prepares a connection without sending a request.
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

// Config returns a configuration for clients of other libraries, with the current token and route.
func (h *Hub) Config() *rest.Config {
	return &rest.Config{Host: h.origin.String(), Transport: h, UserAgent: "muster-agent/" + version.Version}
}

// Move sends all later requests to the target of the other connection, with its trust. A request in
// progress ends on the old route.
func (h *Hub) Move(to *Hub) { h.route.Swap(to.route.Load()).transport.CloseIdleConnections() }

// SetToken sets the token of all later requests.
func (h *Hub) SetToken(token string) { h.token.Store(&token) }

// Target returns the target of requests.
func (h *Hub) Target() Target { return h.route.Load().target }

// Server returns the URL.
func (h *Hub) Server() string { return h.Target().Server }

// Now returns the time by the hub's clock, as in the hub's tokens.
func (h *Hub) Now() time.Time { return h.clock.Now() }

// Close ends idle connections.
func (h *Hub) Close() { h.route.Load().transport.CloseIdleConnections() }

// Registrations returns the client for the requests in a workspace.
func (h *Hub) Registrations(workspace string) (*Registrations, error) {
	return kubeclient.Of[fleet.ClusterRegistration, fleet.ClusterRegistrationList](
		h.connection, fleet.GroupVersion.WithResource("clusterregistrations"), workspace)
}

// RoundTrip sends the request to the hub, adds the token and reads the hub's clock.
func (h *Hub) RoundTrip(request *http.Request) (*http.Response, error) {
	current := h.route.Load()
	if request.URL.Host == h.origin.Host {
		request = current.direct(request, h.origin)
		if token := *h.token.Load(); token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
	}
	return h.clock.Ask(current.transport, request)
}

// WrappedRoundTripper lets client-go unwrap the transport.
func (h *Hub) WrappedRoundTripper() http.RoundTripper { return h.route.Load().transport }
