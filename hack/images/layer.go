package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// Files of an image besides the programs.
const (
	certificates = "etc/ssl/certs/ca-certificates.crt"
	materials    = "usr/share/sbom.spdx.json"
)

// rootFilesystem returns the one layer of an image.
func rootFilesystem(dir string, programs []string, bom []byte, modTime time.Time) (v1.Layer, error) {
	var content bytes.Buffer
	archive := &archiver{Writer: tar.NewWriter(&content), at: modTime}
	for _, name := range []string{"etc/", "etc/ssl/", "etc/ssl/certs/", "tmp/", "usr/", "usr/share/"} {
		archive.directory(name)
	}
	archive.file("etc/passwd", 0o644, []byte("root:x:0:0:root:/:/\nmuster:x:1000:1000:muster:/tmp:/\n"))
	archive.file("etc/group", 0o644, []byte("root:x:0:\nmuster:x:1000:\n"))
	archive.file(certificates, 0o644, authorities())
	archive.file(materials, 0o644, bom)
	for _, program := range programs {
		data, err := os.ReadFile(filepath.Join(dir, program))
		if err != nil {
			return nil, err
		}
		archive.file(program, 0o755, data)
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
}

// authorities returns the certificate authorities trusted by Mozilla, as PEM.
func authorities() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer accepts everything
	}
	return out.Bytes()
}

// archiver writes a tar with entries of a single time, owned by root. It keeps the first error.
type archiver struct {
	*tar.Writer
	at  time.Time
	err error
}

func (a *archiver) directory(name string) {
	mode := int64(0o755)
	if name == "tmp/" {
		mode = 0o1777
	}
	a.put(&tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode}, nil)
}

func (a *archiver) file(name string, mode int64, data []byte) {
	a.put(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(data))}, data)
}

func (a *archiver) put(header *tar.Header, data []byte) {
	header.ModTime, header.Format = a.at, tar.FormatPAX
	if a.err == nil {
		a.err = a.WriteHeader(header)
	}
	if a.err == nil {
		_, a.err = a.Write(data)
	}
}

func (a *archiver) Close() error {
	if a.err != nil {
		return a.err
	}
	return a.Writer.Close()
}

// writeArchive writes an image as the tar of an OCI image layout, for containerd, kind, k3d, podman
// and skopeo.
func writeArchive(path, name, tag string, index v1.ImageIndex, modTime time.Time) error {
	dir, err := os.MkdirTemp("", "layout")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a directory of temporary files
	root, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	// containerd uses the first for the image's name, other tools the second.
	named := layout.WithAnnotations(map[string]string{
		"io.containerd.image.name":          "docker.io/library/" + name + ":" + tag,
		"org.opencontainers.image.ref.name": tag,
	})
	if err := root.AppendIndex(index, named); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	archive := &archiver{Writer: tar.NewWriter(file), at: modTime}
	err = filepath.WalkDir(dir, func(name string, entry os.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		relative, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			archive.directory(filepath.ToSlash(relative) + "/")
			return nil
		}
		data, err := os.ReadFile(name)
		archive.file(filepath.ToSlash(relative), 0o644, data)
		return err
	})
	if closed := archive.Close(); err == nil {
		err = closed
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}
	return nil
}
