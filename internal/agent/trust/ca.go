// Package trust decides whom the agent believes to be its hub, and explains a refusal.
//
// Its invariant: with mode strict only the given certificates count; nothing ever skips verification.
package trust

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// Mode is agentTLSMode.
type Mode string

// The modes.
const (
	// SystemStore trusts the given CA and what the system trusts. It is the default.
	SystemStore Mode = "system-store"
	// Strict trusts only the given CA.
	Strict Mode = "strict"
)

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

// ParseCA reads certificates from PEM or from base64 of PEM, as in the certificate-authority-data of a kubeconfig, and returns
// them as PEM. White space does not matter; nothing in, nothing out.
func ParseCA(data []byte) ([]byte, error) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return nil, nil
	}
	if !bytes.Contains(data, []byte("-----BEGIN")) {
		compact := strings.Map(func(r rune) rune {
			if unicode.IsSpace(r) {
				return -1
			}
			return r
		}, string(data))
		decoded, err := base64.StdEncoding.DecodeString(compact)
		if err != nil || !bytes.Contains(decoded, []byte("-----BEGIN")) {
			return nil, errors.New("it is neither a PEM certificate nor base64 of one")
		}
		data = decoded
	}
	certificates, err := parsePEM(data)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, certificate := range certificates {
		if err := pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}); err != nil {
			return nil, fmt.Errorf("encoding the certificate of %s: %w", certificate.Subject, err)
		}
	}
	return out.Bytes(), nil
}

func parsePEM(data []byte) ([]*x509.Certificate, error) {
	var certificates []*x509.Certificate
	// Indented PEM is what comes out of a YAML block that was pasted at the wrong depth.
	var unindented bytes.Buffer
	for line := range bytes.Lines(data) {
		unindented.Write(bytes.TrimLeft(line, " \t"))
	}
	rest := unindented.Bytes()
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("it holds a PEM block %q: want only CERTIFICATE", block.Type)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d in it is damaged: %w", len(certificates)+1, err)
		}
		certificates = append(certificates, certificate)
	}
	if len(certificates) == 0 {
		return nil, errors.New("it holds no whole PEM certificate")
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
