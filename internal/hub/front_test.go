package hub_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	stdlog "log"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// front is an address of the hub's API server: a proxy that ends TLS, with a CA of its own.
type front struct {
	url, ca string
	// close cuts all connections.
	close func()
}

// newFront serves until the test ends. What edit, if there is one, does to the body of an answer that is not a watch is what a client sees.
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
	certificate, ca := newCertificate(f.t)
	listener, err := (&net.ListenConfig{}).Listen(f.t.Context(), "tcp", "127.0.0.1:0")
	f.check(err)
	server := &http.Server{
		Handler: proxy, ReadHeaderTimeout: 5 * time.Second, ErrorLog: proxy.ErrorLog,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}},
	}
	go func() { _ = server.ServeTLS(listener, "", "") }() // it ends by being closed
	closeAll := func() { _ = server.Close() }             // twice does no harm
	f.t.Cleanup(closeAll)
	return front{url: "https://" + listener.Addr().String(), ca: ca, close: closeAll}
}

// newCertificate makes a CA and a certificate of it for this machine.
func newCertificate(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	fail := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	fail(err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	fail(err)
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "front " + strings.ToLower(rand.Text()[:6])},
		IsCA: true, BasicConstraintsValid: true, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	ca, err := x509.CreateCertificate(rand.Reader, authority, authority, &caKey.PublicKey, caKey)
	fail(err)
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "hub"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, authority, &key.PublicKey, caKey)
	fail(err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca}))
}
