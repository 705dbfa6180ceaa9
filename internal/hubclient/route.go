package hubclient

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// route is a connection to the hub's API server: its address, the trusted certificates, and the
// transport.
type route struct {
	target    Target
	base      *url.URL
	roots     roots
	transport *http.Transport
}

func newRoute(target Target) (*route, error) {
	roots, err := newRoots(target.Trust, target.CA)
	if err != nil {
		return nil, err
	}
	config := roots.TLS()
	if target.Certificate != nil {
		config.Certificates = []tls.Certificate{*target.Certificate}
	}
	base, err := url.Parse(target.Server)
	if err != nil {
		return nil, fmt.Errorf("parsing the URL of the hub: %w", err)
	}
	return &route{target: target, base: base, roots: roots, transport: utilnet.SetTransportDefaults(&http.Transport{
		Proxy: func(request *http.Request) (*url.URL, error) {
			return httpproxy.FromEnvironment().ProxyFunc()(request.URL)
		},
		DialContext:         (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:     config,
		TLSHandshakeTimeout: dialTimeout,
		IdleConnTimeout:     90 * time.Second,
	})}, nil
}

// direct returns a copy of a request for the origin, readdressed to this route. Both URLs may have
// a path.
func (r *route) direct(request *http.Request, origin *url.URL) *http.Request {
	request = utilnet.CloneRequest(request)
	if r.base == origin {
		return request
	}
	located := *request.URL
	located.Scheme, located.Host = r.base.Scheme, r.base.Host
	located.Path = r.base.Path + strings.TrimPrefix(located.Path, origin.Path)
	located.RawPath = ""
	request.URL, request.Host = &located, r.base.Host
	return request
}
