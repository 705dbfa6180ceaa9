package hub_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"k8s.io/client-go/rest"

	"github.com/muster-fleet/muster/internal/testkube"
)

// front is an address of the hub's API server: a proxy that ends TLS, with a CA of its own.
type front struct {
	url, ca string
	// close cuts all connections, open serves again.
	close, open func()
}

// newFront serves until the test ends. What edit, if there is one, does to the body of an answer
// that is not a watch is what a client sees.
func (f fixture) newFront(edit func([]byte) []byte) front {
	f.t.Helper()
	target, err := url.Parse(f.cluster.Config.Host)
	f.check(err)
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(f.cluster.Config))
	f.check(err)
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // a watch passes line by line
		ErrorLog:      stdlog.New(io.Discard, "", 0),
	}
	if edit != nil {
		proxy.ModifyResponse = func(response *http.Response) error {
			if response.Request.URL.Query().Has("watch") {
				return nil
			}
			body, err := io.ReadAll(response.Body)
			if err != nil {
				return err
			}
			body = edit(body)
			response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			response.Header.Set("Content-Length", fmt.Sprint(len(body)))
			return nil
		}
		proxy.Rewrite = func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Del("Accept-Encoding")
		}
	}
	certificate, ca := testkube.NewCertificate(f.t)
	address := "127.0.0.1:0"
	var server *http.Server
	open := func() {
		listener, err := (&net.ListenConfig{}).Listen(f.t.Context(), "tcp", address)
		f.check(err)
		address = listener.Addr().String()
		server = &http.Server{
			Handler: proxy, ReadHeaderTimeout: 5 * time.Second, ErrorLog: proxy.ErrorLog,
			TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}},
		}
		go func(serving *http.Server) { _ = serving.ServeTLS(listener, "", "") }(server) // it ends by being closed
	}
	open()
	closeAll := func() { _ = server.Close() } // twice does no harm
	f.t.Cleanup(closeAll)
	return front{url: "https://" + address, ca: ca, close: closeAll, open: open}
}
