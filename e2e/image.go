package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
)

// foreignProgram returns the header of a program for another processor than this machine's. A
// kernel reads no more.
func foreignProgram() []byte {
	machine := elf.EM_AARCH64
	if runtime.GOARCH == "arm64" {
		machine = elf.EM_X86_64
	}
	header := make([]byte, 64)
	copy(header, elf.ELFMAG)
	header[elf.EI_CLASS], header[elf.EI_DATA], header[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)
	header[16], header[18], header[20] = byte(elf.ET_EXEC), byte(machine), byte(elf.EV_CURRENT)
	return header
}

// archive is an OCI archive under construction.
type archive struct {
	content bytes.Buffer
	tar     *tar.Writer
}

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

func (a *archive) add(name string, data []byte, mode int64) error {
	if err := a.tar.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(data))}); err != nil {
		return err
	}
	_, err := a.tar.Write(data)
	return err
}

func (a *archive) blob(kind string, data []byte) (descriptor, error) {
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])
	return descriptor{MediaType: "application/vnd.oci.image." + kind, Digest: "sha256:" + digest, Size: len(data)},
		a.add("blobs/sha256/"+digest, data, 0o644)
}

func (a *archive) document(kind string, content any) (descriptor, error) {
	data, err := json.Marshal(content)
	if err != nil {
		return descriptor{}, err
	}
	return a.blob(kind, data)
}

// writeImage writes an OCI archive with an image of this machine's architecture, with a single
// program that it runs.
func writeImage(path, name string, program []byte) error {
	a := &archive{}
	a.tar = tar.NewWriter(&a.content)
	var files bytes.Buffer
	inside := &archive{tar: tar.NewWriter(&files)}
	if err := inside.add("program", program, 0o755); err != nil {
		return err
	}
	if err := inside.tar.Close(); err != nil {
		return err
	}
	layer, err := a.blob("layer.v1.tar", files.Bytes())
	if err != nil {
		return err
	}
	config, err := a.document("config.v1+json", map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "config": map[string]any{"Entrypoint": []string{"/program"}, "User": "1000:1000"},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{layer.Digest}},
	})
	if err != nil {
		return err
	}
	manifest, err := a.document("manifest.v1+json", map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": []descriptor{layer},
	})
	if err != nil {
		return err
	}
	manifest.Annotations = map[string]string{"io.containerd.image.name": name}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "manifests": []descriptor{manifest}})
	if err != nil {
		return err
	}
	if err := a.add("index.json", index, 0o644); err != nil {
		return err
	}
	if err := a.add("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`), 0o644); err != nil {
		return err
	}
	if err := a.tar.Close(); err != nil {
		return err
	}
	if err := os.WriteFile(path, a.content.Bytes(), 0o600); err != nil {
		return fmt.Errorf("writing an image: %w", err)
	}
	return nil
}
