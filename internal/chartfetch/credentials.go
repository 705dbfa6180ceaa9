package chartfetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"oras.land/oras-go/v2/registry/remote/auth"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// Further keys of a Secret with credentials. Kubernetes defines the others.
const (
	keyToken   = "token"
	keyCACerts = "cacerts" // as in Rancher Fleet
)

// Credentials authenticate a Fetcher at one host: the one in the address of the chart, or of its
// repository. No other host receives them, and no address with plain http.
type Credentials struct {
	// everywhere is for any host without a credential in hosts; may be nil.
	everywhere *auth.Credential
	hosts      map[string]auth.Credential
	// authorities are certificates in PEM.
	authorities []byte
	// insecure accepts any certificate.
	insecure bool
}

// AcceptingAnyCertificate returns credentials, possibly from nil, without a check of certificates.
func AcceptingAnyCertificate(c *Credentials) *Credentials {
	if c == nil {
		return &Credentials{insecure: true}
	}
	insecure := *c
	insecure.insecure = true
	return &insecure
}

// ParseCredentials reads the data of a Secret. For any host it has username and password, or token.
// For some hosts it has .dockerconfigjson. cacerts or ca.crt hold certificates of authorities to
// trust. Its errors quote no values.
func ParseCredentials(data map[string][]byte) (*Credentials, error) {
	c := &Credentials{hosts: map[string]auth.Credential{}}
	text := func(key string) string { return strings.TrimSpace(string(data[key])) }
	switch {
	case text(keyToken) != "":
		c.everywhere = &auth.Credential{AccessToken: text(keyToken)}
	case text(corev1.BasicAuthUsernameKey) != "":
		c.everywhere = &auth.Credential{Username: text(corev1.BasicAuthUsernameKey), Password: text(corev1.BasicAuthPasswordKey)}
	}
	if config := data[corev1.DockerConfigJsonKey]; len(config) > 0 {
		if err := c.readDockerConfig(config); err != nil {
			return nil, fmt.Errorf("key %s: %w", corev1.DockerConfigJsonKey, err)
		}
	}
	for _, key := range []string{keyCACerts, corev1.ServiceAccountRootCAKey} {
		if text(key) == "" {
			continue
		}
		if !x509.NewCertPool().AppendCertsFromPEM(data[key]) {
			return nil, fmt.Errorf("key %s holds no certificate in PEM", key)
		}
		c.authorities = data[key]
		break
	}
	if c.everywhere == nil && len(c.hosts) == 0 && len(c.authorities) == 0 {
		return nil, fmt.Errorf("it has none of the keys %s, %s, %s, %s, %s", corev1.BasicAuthUsernameKey, keyToken, corev1.DockerConfigJsonKey,
			keyCACerts, corev1.ServiceAccountRootCAKey)
	}
	return c, nil
}

// readDockerConfig reads the credentials of hosts. Its errors quote no input.
func (c *Credentials) readDockerConfig(text []byte) error {
	var config struct {
		Auths map[string]struct{ Username, Password, Auth string }
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return errors.New("it is no JSON of a Docker configuration")
	}
	for address, entry := range config.Auths {
		if decoded, err := base64.StdEncoding.DecodeString(entry.Auth); entry.Auth != "" {
			name, password, split := strings.Cut(string(decoded), ":")
			if err != nil || !split {
				return fmt.Errorf("auth of %s is not base64 of USERNAME:PASSWORD", address)
			}
			entry.Username, entry.Password = name, password
		}
		host := strings.TrimPrefix(strings.TrimPrefix(address, "https://"), "http://")
		host, _, _ = strings.Cut(host, "/")
		c.hosts[host] = auth.Credential{Username: entry.Username, Password: entry.Password}
	}
	return nil
}

// at returns the credential for a host.
func (c *Credentials) at(host string) auth.Credential {
	if own, found := c.hosts[host]; found {
		return own
	}
	if c.everywhere != nil {
		return *c.everywhere
	}
	return auth.EmptyCredential
}

// as returns a Fetcher with credentials, possibly nil, and the function to end it.
func (f *Fetcher) as(c *Credentials, options fleet.HelmOptions) (*Fetcher, func(), error) {
	if c == nil {
		return f, func() {}, nil
	}
	f, err := f.with(c, options)
	if err != nil {
		return nil, nil, err
	}
	return f, f.client.CloseIdleConnections, nil
}

// with returns a Fetcher with authentication at the host of a chart's address.
func (f *Fetcher) with(c *Credentials, options fleet.HelmOptions) (*Fetcher, error) {
	address := options.Repo
	if address == "" {
		address = options.Chart
	}
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" {
		return nil, errors.New("the address has no host to send credentials to")
	}
	credential := c.at(parsed.Host)
	if credential != auth.EmptyCredential && plain(address) {
		return nil, errors.New("credentials go over https only: use an https or oci address")
	}
	client, below := *f.client, f.client.Transport.(bounding).RoundTripper
	if transport, plain := below.(*http.Transport); plain && (c.insecure || len(c.authorities) > 0) {
		if below, err = trusting(transport, c.authorities, c.insecure); err != nil {
			return nil, err
		}
	}
	client.Transport = bounding{below}
	of := &Fetcher{client: &client, credential: func(_ context.Context, host string) (auth.Credential, error) {
		if host == parsed.Host {
			return credential, nil
		}
		return auth.EmptyCredential, nil
	}}
	if parsed.Scheme == "https" {
		client.Transport = bounding{authorizing{below, parsed.Host, credential}}
	}
	return of, nil
}

// trusting returns a transport with trust in further authorities, or in any certificate.
func trusting(transport *http.Transport, authorities []byte, insecure bool) (*http.Transport, error) {
	transport = transport.Clone()
	if transport.TLSClientConfig == nil {
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	transport.TLSClientConfig.InsecureSkipVerify = insecure
	roots := transport.TLSClientConfig.RootCAs
	if roots == nil {
		var err error
		if roots, err = x509.SystemCertPool(); err != nil {
			return nil, fmt.Errorf("reading the certificates of this machine: %w", err)
		}
	}
	roots = roots.Clone()
	roots.AppendCertsFromPEM(authorities)
	transport.TLSClientConfig.RootCAs = roots
	return transport, nil
}

// authorizing authenticates requests to one host by https. A redirect leads to other hosts without.
type authorizing struct {
	http.RoundTripper
	host       string
	credential auth.Credential
}

func (a authorizing) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Host != a.host || request.URL.Scheme != "https" || a.credential == auth.EmptyCredential {
		return a.RoundTripper.RoundTrip(request)
	}
	request = request.Clone(request.Context())
	if a.credential.AccessToken != "" {
		request.Header.Set("Authorization", "Bearer "+a.credential.AccessToken)
	} else {
		request.SetBasicAuth(a.credential.Username, a.credential.Password)
	}
	return a.RoundTripper.RoundTrip(request)
}
