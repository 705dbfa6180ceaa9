package main

import (
	"bytes"
	"encoding/json"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	oci "github.com/opencontainers/image-spec/specs-go/v1"
)

// plainIndex is an index encoded with OCI's own types. skopeo writes every copied index in this
// encoding. Another encoding would get another digest there, and lose its signature.
type plainIndex struct {
	children
	text []byte
}

// children are the images of an index.
type children interface{ v1.ImageIndex }

func plainly(index v1.ImageIndex) (v1.ImageIndex, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	plain := oci.Index{Versioned: specs.Versioned{SchemaVersion: int(manifest.SchemaVersion)}, MediaType: string(manifest.MediaType)}
	for _, m := range manifest.Manifests {
		plain.Manifests = append(plain.Manifests,
			oci.Descriptor{MediaType: string(m.MediaType), Digest: digest.Digest(m.Digest.String()), Size: m.Size,
				Platform: &oci.Platform{Architecture: m.Platform.Architecture, OS: m.Platform.OS}})
	}
	text, err := json.Marshal(plain)
	return plainIndex{index, text}, err
}

// RawManifest implements v1.ImageIndex.
func (p plainIndex) RawManifest() ([]byte, error) { return p.text, nil }

// IndexManifest implements v1.ImageIndex.
func (p plainIndex) IndexManifest() (*v1.IndexManifest, error) {
	return v1.ParseIndexManifest(bytes.NewReader(p.text))
}

// Digest implements v1.ImageIndex.
func (p plainIndex) Digest() (v1.Hash, error) {
	hash, _, err := v1.SHA256(bytes.NewReader(p.text))
	return hash, err
}

// Size implements v1.ImageIndex.
func (p plainIndex) Size() (int64, error) { return int64(len(p.text)), nil }
