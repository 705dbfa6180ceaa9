package credential

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/muster-fleet/muster/internal/naming"
)

const blockCertificate = "CERTIFICATE"

// ParseCA parses a CA bundle in PEM or, as in a kubeconfig, base64 of PEM. It returns the
// certificates as PEM in a canonical form. An empty input is an empty bundle.
func ParseCA(text string) ([]byte, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	// Lines indented by a user, as in YAML, are still PEM.
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	bundle := []byte(strings.Join(lines, "\n") + "\n")
	if !strings.HasPrefix(text, "-----BEGIN") {
		decoded, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
		if err != nil {
			return nil, fmt.Errorf("the CA is neither PEM nor base64 of PEM")
		}
		bundle = decoded
	}
	certificates, err := ParseCertificates(bundle)
	if err != nil {
		return nil, err
	}
	var canonical []byte
	for _, certificate := range certificates {
		canonical = append(canonical, pem.EncodeToMemory(&pem.Block{Type: blockCertificate, Bytes: certificate.Raw})...)
	}
	return canonical, nil
}

// ParseCertificates parses a CA bundle in PEM with at least one certificate.
func ParseCertificates(bundle []byte) ([]*x509.Certificate, error) {
	var certificates []*x509.Certificate
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != blockCertificate {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d of the CA bundle: %w", len(certificates)+1, err)
		}
		certificates = append(certificates, certificate)
	}
	if len(certificates) == 0 {
		return nil, errors.New("the CA holds no certificate: want PEM, or base64 of PEM as under certificate-authority-data in a kubeconfig")
	}
	return certificates, nil
}

// CAHash returns upstream's digest of a CA bundle: SHA-224 of the bytes as JSON.
func CAHash(bundle []byte) string {
	if len(bundle) == 0 {
		bundle = nil
	}
	return naming.FieldHash(bundle)
}

// CADigests returns the SHA-256 digest of each certificate of a CA bundle in hexadecimal form, as
// openssl does, in order. An unreadable bundle has none.
func CADigests(bundle []byte) []string {
	certificates, err := ParseCertificates(bundle)
	if err != nil {
		return nil
	}
	digests := make([]string, len(certificates))
	for i, certificate := range certificates {
		digests[i] = naming.Digest(certificate.Raw)
	}
	slices.Sort(digests)
	return slices.Compact(digests)
}
