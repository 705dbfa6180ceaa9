package main

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The files with checksums, signature and provenance of the others.
const (
	checksums  = "checksums.txt"
	signature  = "checksums.txt.sig"
	publicKey  = "cosign.pub"
	provenance = "provenance.intoto.json"
)

// subject is a file of a statement of in-toto (https://in-toto.io/Statement/v1).
type subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

// vouch writes the provenance of the files, their checksums, and a signature of the checksums.
func (r *release) vouch() error {
	subjects, err := r.subjects()
	if err != nil {
		return err
	}
	statement, err := json.MarshalIndent(r.statement(subjects), "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.out, provenance), append(statement, '\n'), 0o644); err != nil {
		return err
	}
	digest := sha256.Sum256(append(statement, '\n'))
	var sums strings.Builder
	for _, s := range append(subjects, subject{provenance, map[string]string{"sha256": hex.EncodeToString(digest[:])}}) {
		fmt.Fprintf(&sums, "%s  %s\n", s.Digest["sha256"], s.Name) // in the format of sha256sum --check
	}
	if err := os.WriteFile(filepath.Join(r.out, checksums), []byte(sums.String()), 0o644); err != nil {
		return err
	}
	fmt.Println(filepath.Join(r.out, checksums))
	return r.sign([]byte(sums.String()))
}

// subjects returns the files of the directory, by name, without the files that vouch writes.
func (r *release) subjects() ([]subject, error) {
	var found []subject
	err := filepath.WalkDir(r.out, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(r.out, path)
		if err != nil || name == checksums || name == signature || name == publicKey || name == provenance ||
			strings.HasSuffix(name, signedSuffix) {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		digest := sha256.New()
		if _, err := io.Copy(digest, file); err != nil {
			return err
		}
		found = append(found, subject{filepath.ToSlash(name), map[string]string{"sha256": hex.EncodeToString(digest.Sum(nil))}})
		return nil
	})
	return found, err
}

// statement returns the provenance of the files, with SLSA's predicate of version 1
// (https://slsa.dev/provenance/v1).
func (r *release) statement(subjects []subject) any {
	const home = "https://github.com/muster-fleet/muster"
	source := map[string]any{"uri": "git+" + home, "digest": map[string]string{"gitCommit": r.revision}}
	return map[string]any{
		"_type": "https://in-toto.io/Statement/v1", "subject": subjects, "predicateType": "https://slsa.dev/provenance/v1",
		"predicate": map[string]any{
			"buildDefinition": map[string]any{
				"buildType": home + "/hack/release", "externalParameters": map[string]any{"version": r.version, "source": source},
				"resolvedDependencies": []any{source},
			},
			"runDetails": map[string]any{
				"builder": map[string]any{"id": home + "/Makefile#release"}, "metadata": map[string]any{"startedOn": r.created.Format(time.RFC3339)},
			},
		},
	}
}

// sign signs the checksums as cosign sign-blob does. cosign verify-blob --key cosign.pub
// --signature checksums.txt.sig checksums.txt verifies them.
func (r *release) sign(text []byte) error {
	key, err := r.privateKey()
	if err != nil || key == nil {
		return err
	}
	signed, err := signatureOf(key, text)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.out, signature), []byte(signed), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, publicKey), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), 0o644)
}

// privateKey reads the key for signatures; it is nil if there is none.
func (r *release) privateKey() (*ecdsa.PrivateKey, error) {
	if r.key == "" {
		fmt.Fprintln(os.Stderr, "release: nothing is signed; -key names the key")
		return nil, nil
	}
	read, err := os.ReadFile(r.key)
	if err != nil {
		return nil, fmt.Errorf("reading the key that signs: %w", err)
	}
	block, _ := pem.Decode(read)
	if block == nil {
		return nil, errors.New("the key that signs is no PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("the key that signs is no unencrypted PKCS #8, as openssl pkcs8 -topk8 -nocrypt writes it")
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, errors.New("the key that signs is not ECDSA")
	}
	return key, nil
}

// signatureOf signs a text as cosign does: ECDSA in ASN.1 over its SHA-256, in base64.
func signatureOf(key *ecdsa.PrivateKey, text []byte) (string, error) {
	digest := sha256.Sum256(text)
	signed, err := ecdsa.SignASN1(rand.Reader, key, digest[:])
	return base64.StdEncoding.EncodeToString(signed), err
}
