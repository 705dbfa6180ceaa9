package main

import (
	"archive/tar"
	"bytes"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// signedSuffix is the suffix of archives with the signature of an image.
const signedSuffix = ".sig.tar"

const (
	manifestType   = "application/vnd.oci.image.manifest.v1+json"
	configType     = "application/vnd.oci.image.config.v1+json"
	payloadType    = "application/vnd.dev.cosign.simplesigning.v1+json"
	signatureLabel = "dev.cosignproject.cosign/signature"
	refName        = "org.opencontainers.image.ref.name"
)

// descriptor names a blob of an OCI image layout (https://github.com/opencontainers/image-spec).
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Size        int               `json:"size"`
	Digest      string            `json:"digest"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// manifest is an index of manifests or the manifest of an image.
type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType,omitempty"`
	Config        *descriptor  `json:"config,omitempty"`
	Layers        []descriptor `json:"layers,omitempty"`
	Manifests     []descriptor `json:"manifests,omitempty"`
}

// payload is the signed content of a signature of an image, in cosign's format simple signing.
type payload struct {
	Critical struct {
		Identity struct {
			Reference string `json:"docker-reference"`
		} `json:"identity"`
		Image struct {
			Digest string `json:"docker-manifest-digest"`
		} `json:"image"`
		Type string `json:"type"`
	} `json:"critical"`
	Optional map[string]any `json:"optional"`
}

// signImages writes an archive with the signature beside the archive of each image. Its tag is the
// one that cosign looks for: sha256-DIGEST.sig in the image's repository.
//
// The image's own archive stays unchanged, because a user who loads it would otherwise get another
// image.
func (r *release) signImages() error {
	if r.key == "" {
		return nil
	}
	key, err := r.privateKey()
	if err != nil {
		return err
	}
	archives, err := filepath.Glob(filepath.Join(r.out, "images", "*.tar"))
	if err != nil {
		return err
	}
	for _, archive := range archives {
		if strings.HasSuffix(archive, signedSuffix) {
			continue
		}
		digest, err := imageDigest(archive)
		if err != nil {
			return fmt.Errorf("reading the digest of the image in %s: %w", archive, err)
		}
		name := strings.TrimSuffix(filepath.Base(archive), ".tar")
		signed := filepath.Join(r.out, "images", name+signedSuffix)
		if err := writeSignature(signed, name, digest, r.created, key); err != nil {
			return fmt.Errorf("signing the image %s: %w", name, err)
		}
		fmt.Printf("%s  %s\n", signed, signatureTag(digest))
	}
	return nil
}

// signatureTag returns cosign's tag for the signatures of an image.
func signatureTag(digest string) string { return strings.Replace(digest, ":", "-", 1) + ".sig" }

// imageDigest returns the digest of the one image, for all platforms, in the tar of an OCI image
// layout.
func imageDigest(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	for archive := tar.NewReader(file); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return "", errors.New("it has no index.json")
		} else if err != nil {
			return "", err
		}
		if header.Name != "index.json" {
			continue
		}
		var index manifest
		if err := json.NewDecoder(archive).Decode(&index); err != nil {
			return "", err
		}
		if len(index.Manifests) != 1 {
			return "", fmt.Errorf("it holds %d images", len(index.Manifests))
		}
		return index.Manifests[0].Digest, nil
	}
}

// writeSignature writes the tar of an OCI image layout with the signature of an image, as cosign
// sign does.
func writeSignature(path, name, digest string, created time.Time, key *ecdsa.PrivateKey) error {
	var signs payload
	signs.Critical.Identity.Reference, signs.Critical.Image.Digest, signs.Critical.Type = name, digest, "cosign container image signature"
	text, err := json.Marshal(signs)
	if err != nil {
		return err
	}
	signed, err := signatureOf(key, text)
	if err != nil {
		return err
	}
	l := layout{blobs: map[string][]byte{}}
	layer := l.add(payloadType, text)
	config := l.json(configType, map[string]any{
		"architecture": "", "os": "", "created": created.Format(time.RFC3339), "config": map[string]any{}, "rootfs": map[string]any{
			"type": "layers", "diff_ids": []string{layer.Digest},
		},
	})
	layer.Annotations = map[string]string{signatureLabel: signed}
	image := l.json(manifestType, manifest{SchemaVersion: 2, MediaType: manifestType, Config: &config, Layers: []descriptor{layer}})
	image.Annotations = map[string]string{refName: signatureTag(digest)}
	return l.write(path, image, created)
}

// layout is an OCI image layout in memory.
type layout struct {
	blobs map[string][]byte // by the path in the archive
	err   error
}

func (l *layout) add(mediaType string, data []byte) descriptor {
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])
	l.blobs["blobs/sha256/"+digest] = data
	return descriptor{MediaType: mediaType, Size: len(data), Digest: "sha256:" + digest}
}

func (l *layout) json(mediaType string, content any) descriptor {
	data, err := json.Marshal(content)
	l.err = errors.Join(l.err, err)
	return l.add(mediaType, data)
}

// write writes the layout, with its one image, as a tar.
func (l *layout) write(path string, image descriptor, created time.Time) error {
	index, err := json.Marshal(manifest{SchemaVersion: 2, Manifests: []descriptor{image}})
	if err := errors.Join(l.err, err); err != nil {
		return err
	}
	l.blobs["index.json"], l.blobs["oci-layout"] = index, []byte(`{"imageLayoutVersion":"1.0.0"}`)
	var packed bytes.Buffer
	archive := tar.NewWriter(&packed)
	for _, name := range slices.Sorted(maps.Keys(l.blobs)) {
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(l.blobs[name])), ModTime: created,
			Format: tar.FormatUSTAR}); err != nil {
			return err
		}
		if _, err := archive.Write(l.blobs[name]); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return os.WriteFile(path, packed.Bytes(), 0o644)
}
