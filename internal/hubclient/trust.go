package hubclient

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/redaction"
)

// TLSMode is agentTLSMode.
type TLSMode string

// The modes.
const (
	// TLSSystemStore trusts the given CA and the system's CAs. It is the default.
	TLSSystemStore TLSMode = "system-store"
	// TLSStrict trusts only the given CA.
	TLSStrict TLSMode = "strict"
	// TLSInsecure trusts every server. It is no value of agentTLSMode.
	TLSInsecure TLSMode = "insecure"
)

// Settings are the names of a user's settings in messages.
type Settings struct {
	// URL is the setting with the URL of the hub.
	URL string
	// SetCA is the instruction for giving the agent the CA of the hub.
	SetCA string
}

// Trust is the trust mode, with the names of its settings.
type Trust struct {
	Mode     TLSMode
	Settings Settings
}

// ParseTLSMode accepts the modes and the empty string for TLSSystemStore.
func ParseTLSMode(s string) (TLSMode, error) {
	switch mode := TLSMode(s); mode {
	case "":
		return TLSSystemStore, nil
	case TLSSystemStore, TLSStrict:
		return mode, nil
	default:
		return "", fmt.Errorf("agentTLSMode is %q: want %s or %s", redaction.Text(s), TLSStrict, TLSSystemStore)
	}
}

// describe formats a certificate for comparison with the output of openssl.
func describe(certificate *x509.Certificate) string {
	name := certificate.Subject.String()
	if name == "" {
		name = "(no subject)"
	}
	return fmt.Sprintf("%s (SHA-256 %s...)", name, naming.Digest(certificate.Raw)[:12])
}

// roots are the trusted certificates for connections to the hub.
type roots struct {
	Trust

	given []*x509.Certificate
	pool  *x509.CertPool
}

// newRoots combines the user's trust with a CA as PEM.
func newRoots(trust Trust, ca []byte) (roots, error) {
	trusted := roots{Trust: trust, pool: x509.NewCertPool()}
	if len(ca) > 0 {
		given, err := credential.ParseCertificates(ca)
		if err != nil {
			return roots{}, err
		}
		trusted.given = given
	}
	switch {
	case trust.Mode == TLSStrict && len(trusted.given) == 0:
		return roots{}, errors.New("agentTLSMode strict trusts only the given CA, and there is none: " +
			"set apiServerCA, or agentTLSMode to system-store")
	case trust.Mode != TLSStrict:
		system, err := x509.SystemCertPool()
		if err == nil {
			trusted.pool = system
		} else if len(trusted.given) == 0 {
			return roots{}, fmt.Errorf("loading the system's certificates: %w; %s", err, trust.Settings.SetCA)
		}
	}
	for _, certificate := range trusted.given {
		trusted.pool.AddCert(certificate)
	}
	return trusted, nil
}

// TLS returns the client configuration with these roots.
func (r roots) TLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: r.pool,
		InsecureSkipVerify: r.Mode == TLSInsecure, //nolint:gosec // only if the user set what says so
	}
}

// Explain names the certificate of a server and the trusted ones; ok is false if err is not about a
// certificate.
func (r roots) Explain(err error) (sentence string, ok bool) {
	var verification *tls.CertificateVerificationError
	if !errors.As(err, &verification) || len(verification.UnverifiedCertificates) == 0 {
		return "", false
	}
	shown := verification.UnverifiedCertificates[0]
	var hostname x509.HostnameError
	if errors.As(err, &hostname) {
		return fmt.Sprintf("it showed the certificate %s, which is %v: use a name in %s that the certificate has",
			describe(shown), hostname, r.Settings.URL), true
	}
	var invalid x509.CertificateInvalidError
	if errors.As(err, &invalid) && invalid.Reason == x509.Expired {
		return fmt.Sprintf("it showed the certificate %s, valid from %s to %s: compare the clocks, or renew it", describe(shown),
			shown.NotBefore.UTC().Format("2006-01-02T15:04Z"), shown.NotAfter.UTC().Format("2006-01-02T15:04Z")), true
	}
	return fmt.Sprintf("it showed the certificate %s issued by %s, which is not trusted (%v); trusted: %s; %s",
		describe(shown), issuer(shown), verification.Err, r, r.Settings.SetCA), true
}

func issuer(certificate *x509.Certificate) string {
	if name := certificate.Issuer.String(); name != "" {
		return name
	}
	return "(no name)"
}

// String lists the trusted certificates.
func (r roots) String() string {
	var names []string
	for _, certificate := range r.given {
		names = append(names, describe(certificate))
	}
	if r.Mode != TLSStrict {
		names = append(names, "the system's certificates")
	}
	return strings.Join(names, ", ")
}
