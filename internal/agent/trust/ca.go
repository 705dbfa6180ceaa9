// Package trust decides whom the agent believes to be its hub, and explains a refusal.
//
// Its invariant: with mode strict only the given certificates count; verification is skipped only with mode insecure, which no
// default leads to and no setting but one that says so.
package trust

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
)

// Mode is agentTLSMode.
type Mode string

// The modes.
const (
	// SystemStore trusts the given CA and what the system trusts. It is the default.
	SystemStore Mode = "system-store"
	// Strict trusts only the given CA.
	Strict Mode = "strict"
	// Insecure trusts anybody who answers. It is no value of agentTLSMode.
	Insecure Mode = "insecure"
)

// Settings is how messages name what a user set.
type Settings struct {
	// URL is the setting with the URL of the hub.
	URL string
	// SetCA says how to give the agent the CA of the hub.
	SetCA string
}

// Policy is whom to trust, and under which names the user decides that.
type Policy struct {
	Mode     Mode
	Settings Settings
}

// ParseMode accepts the modes and the empty string, which is SystemStore.
func ParseMode(s string) (Mode, error) {
	switch mode := Mode(s); mode {
	case "":
		return SystemStore, nil
	case SystemStore, Strict:
		return mode, nil
	default:
		return "", fmt.Errorf("agentTLSMode is %q: want %s or %s", s, Strict, SystemStore)
	}
}

func parsePEM(data []byte) ([]*x509.Certificate, error) {
	var certificates []*x509.Certificate
	rest := data
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d of the CA is damaged: %w", len(certificates)+1, err)
		}
		certificates = append(certificates, certificate)
	}
	if len(certificates) == 0 {
		return nil, errors.New("the CA holds no whole PEM certificate")
	}
	return certificates, nil
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
