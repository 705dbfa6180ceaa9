package hubclient

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/muster-fleet/muster/internal/credential"
)

// TLSMode is agentTLSMode.
type TLSMode string

// The modes.
const (
	// TLSSystemStore trusts the given CA and what the system trusts, by default.
	TLSSystemStore TLSMode = "system-store"
	// TLSStrict trusts only the given CA.
	TLSStrict TLSMode = "strict"
	// TLSInsecure trusts anybody who answers, and is no value of agentTLSMode.
	TLSInsecure TLSMode = "insecure"
)

// Settings is how messages name what a user set.
type Settings struct {
	// URL is the setting with the URL of the hub.
	URL string
	// SetCA says how to give the agent the CA of the hub.
	SetCA string
}

// Trust is whom to trust, and under which names the user decides that.
type Trust struct {
	Mode     TLSMode
	Settings Settings
}

// ParseTLSMode accepts the modes and the empty string, which is TLSSystemStore.
func ParseTLSMode(s string) (TLSMode, error) {
	switch mode := TLSMode(s); mode {
	case "":
		return TLSSystemStore, nil
	case TLSSystemStore, TLSStrict:
		return mode, nil
	default:
		return "", fmt.Errorf("agentTLSMode is %q: want %s or %s", s, TLSStrict, TLSSystemStore)
	}
}

// describe names a certificate as a person can compare it with the output of openssl.
func describe(certificate *x509.Certificate) string {
	sum := sha256.Sum256(certificate.Raw)
	name := certificate.Subject.String()
	if name == "" {
		name = "(no subject)"
	}
	return fmt.Sprintf("%s (SHA-256 %s...)", name, hex.EncodeToString(sum[:6]))
}

// roots are the certificates that count when the hub is dialed.
type roots struct {
	Trust

	given []*x509.Certificate
	pool  *x509.CertPool
}

// newRoots combines what the user trusts with a CA as PEM.
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

// TLS is the client configuration that trusts these roots.
func (r roots) TLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: r.pool,
		InsecureSkipVerify: r.Mode == TLSInsecure, //nolint:gosec // only if the user set what says so
	}
}

// Explain says which certificate a server showed and which were trusted; ok is false if err is not
// about a certificate.
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

// String lists what is trusted.
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
