package main

import (
	"archive/tar"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// throwAway makes a key and returns the file that it is in.
func throwAway(t *testing.T) (*ecdsa.PrivateKey, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "cosign.key")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return key, path
}

// unpack returns the files of a tar by name.
func unpack(t *testing.T, path string) map[string][]byte {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	files := map[string][]byte{}
	for archive := tar.NewReader(file); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		} else if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
}

// blob returns what a descriptor names, and holds it to the digest and the size.
func blob(t *testing.T, files map[string][]byte, of descriptor, into any) []byte {
	t.Helper()
	data := files["blobs/sha256/"+strings.TrimPrefix(of.Digest, "sha256:")]
	if sum := sha256.Sum256(data); of.Digest != "sha256:"+hex.EncodeToString(sum[:]) || of.Size != len(data) {
		t.Fatalf("%+v is %d bytes with another digest", of, len(data))
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
	return data
}

func TestTheImagesAreSignedAsCosignSignsThem(t *testing.T) {
	r := newRelease(t)
	key, path := throwAway(t)
	dir := filepath.Join(r.out, "images")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	image := layout{blobs: map[string][]byte{}}
	of := image.json("application/vnd.oci.image.index.v1+json", manifest{SchemaVersion: 2})
	if err := image.write(filepath.Join(dir, "muster-hub.tar"), of, r.created); err != nil {
		t.Fatal(err)
	}
	before := contents(t, r)
	if err := r.signImages(); err != nil || contents(t, r) != before {
		t.Fatalf("without a key: %v, %s", err, contents(t, r))
	}
	r.key = path
	for range 2 { // what is signed already is signed again, and a signature is not
		if err := r.signImages(); err != nil {
			t.Fatal(err)
		}
	}
	all, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(all) != 2 || contents(t, r) != before {
		t.Errorf("there are %v, and the checksums are of\n%s", all, contents(t, r))
	}

	files := unpack(t, filepath.Join(dir, "muster-hub.sig.tar"))
	var index, signed manifest
	if err := json.Unmarshal(files["index.json"], &index); err != nil || len(index.Manifests) != 1 {
		t.Fatalf("%v: %s", err, files["index.json"])
	}
	if tag := index.Manifests[0].Annotations[refName]; tag != "sha256-"+strings.TrimPrefix(of.Digest, "sha256:")+".sig" {
		t.Errorf("the tag is %q", tag)
	}
	blob(t, files, index.Manifests[0], &signed)
	if len(signed.Layers) != 1 || signed.Layers[0].MediaType != payloadType || signed.MediaType != index.Manifests[0].MediaType {
		t.Fatalf("the manifest is %+v", signed)
	}
	var config struct {
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	blob(t, files, *signed.Config, &config)
	if diff := cmp.Diff([]string{signed.Layers[0].Digest}, config.RootFS.DiffIDs); diff != "" {
		t.Errorf("layers of the config (-want +got):\n%s", diff)
	}
	var payload map[string]any
	text := blob(t, files, signed.Layers[0], &payload)
	if diff := cmp.Diff(map[string]any{"optional": nil, "critical": map[string]any{
		"identity": map[string]any{"docker-reference": "muster-hub"}, "image": map[string]any{"docker-manifest-digest": of.Digest},
		"type": "cosign container image signature",
	}}, payload); diff != "" {
		t.Errorf("payload (-want +got):\n%s", diff)
	}
	raw, err := base64.StdEncoding.DecodeString(signed.Layers[0].Annotations[signatureLabel])
	if sum := sha256.Sum256(text); err != nil || !ecdsa.VerifyASN1(&key.PublicKey, sum[:], raw) {
		t.Errorf("the signature is not that of the payload (%v)", err)
	}
}

func TestAnArchiveThatIsNoImageIsNotSigned(t *testing.T) {
	r := newRelease(t)
	_, r.key = throwAway(t)
	if err := os.MkdirAll(filepath.Join(r.out, "images"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.out, "images", "muster-hub.tar"), make([]byte, 1024), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.signImages(); err == nil || !strings.Contains(err.Error(), "it has no index.json") {
		t.Errorf("got %v", err)
	}
}
