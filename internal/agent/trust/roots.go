package trust

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
)

// Roots is what the agent trusts when it dials the hub.
type Roots struct {
	Policy

	given []*x509.Certificate
	pool  *x509.CertPool
}

// NewRoots combines the policy with a CA as PEM.
func NewRoots(policy Policy, ca []byte) (Roots, error) {
	roots, mode := Roots{Policy: policy, pool: x509.NewCertPool()}, policy.Mode
	if len(ca) > 0 {
		given, err := parsePEM(ca)
		if err != nil {
			return Roots{}, err
		}
		roots.given = given
	}
	switch {
	case mode == Strict && len(roots.given) == 0:
		return Roots{}, errors.New("agentTLSMode strict trusts only the given CA, and there is none: " +
			"set apiServerCA, or agentTLSMode to system-store")
	case mode != Strict:
		system, err := x509.SystemCertPool()
		if err == nil {
			roots.pool = system
		} else if len(roots.given) == 0 {
			return Roots{}, fmt.Errorf("loading the system's certificates: %w; %s", err, policy.Settings.SetCA)
		}
	}
	for _, certificate := range roots.given {
		roots.pool.AddCert(certificate)
	}
	return roots, nil
}

// TLS is the client configuration that trusts these roots.
func (r Roots) TLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: r.pool,
		InsecureSkipVerify: r.Mode == Insecure, //nolint:gosec // only if the user set what says so
	}
}

// Explain says which certificate a server showed and which were trusted; ok is false if err is not about a certificate.
func (r Roots) Explain(err error) (sentence string, ok bool) {
	var verification *tls.CertificateVerificationError
	if !errors.As(err, &verification) || len(verification.UnverifiedCertificates) == 0 {
		return "", false
	}
	seen := verification.UnverifiedCertificates[0]
	var hostname x509.HostnameError
	if errors.As(err, &hostname) {
		return fmt.Sprintf("it showed the certificate %s, which is %v: use a name in %s that the certificate has",
			describe(seen), hostname, r.Settings.URL), true
	}
	var invalid x509.CertificateInvalidError
	if errors.As(err, &invalid) && invalid.Reason == x509.Expired {
		return fmt.Sprintf("it showed the certificate %s, valid from %s to %s: compare the clocks, or renew it", describe(seen),
			seen.NotBefore.UTC().Format("2006-01-02T15:04Z"), seen.NotAfter.UTC().Format("2006-01-02T15:04Z")), true
	}
	return fmt.Sprintf("it showed the certificate %s issued by %s, which is not trusted (%v); trusted: %s; %s",
		describe(seen), issuer(seen), verification.Err, r, r.Settings.SetCA), true
}

func issuer(certificate *x509.Certificate) string {
	if name := certificate.Issuer.String(); name != "" {
		return name
	}
	return "(no name)"
}

// String lists what is trusted.
func (r Roots) String() string {
	var names []string
	for _, certificate := range r.given {
		names = append(names, describe(certificate))
	}
	if r.Mode != Strict {
		names = append(names, "the system's certificates")
	}
	return strings.Join(names, ", ")
}
