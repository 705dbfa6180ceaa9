package kubenode

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
)

// PauseImage is the image of the container with the namespaces of a Pod.
const PauseImage = "docker.io/localkube/pause:1"

// waiting is the program of the pause image by architecture: it waits for a signal in a loop.
var waiting = map[string]struct {
	elfMachine uint16
	code       []byte
}{
	"amd64": {62, []byte{
		0xb8, 34, 0, 0, 0, // mov eax, 34 (pause)
		0x0f, 0x05, // syscall
		0xeb, 0xf7, // jmp to the start
	}},
	"arm64": {183, []byte{
		0x00, 0x00, 0x80, 0xd2, // mov x0, 0
		0x01, 0x00, 0x80, 0xd2, // mov x1, 0
		0x02, 0x00, 0x80, 0xd2, // mov x2, 0
		0x03, 0x00, 0x80, 0xd2, // mov x3, 0
		0x28, 0x09, 0x80, 0xd2, // mov x8, 73 (ppoll)
		0x01, 0x00, 0x00, 0xd4, // svc 0
		0xfa, 0xff, 0xff, 0x17, // b to the start
	}},
}

// pauseProgram is an ELF file: its header, one segment and the code.
func pauseProgram(architecture string) ([]byte, error) {
	program, supported := waiting[architecture]
	if !supported {
		return nil, fmt.Errorf("localkube has no pause image for %s", architecture)
	}
	const (
		base        = 0x400000
		headers     = 64 + 56
		readExecute = 5
		page        = 0x1000
	)
	size := uint64(headers + len(program.code))
	var file bytes.Buffer
	file.Write([]byte{0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	for _, field := range []any{
		uint16(2), program.elfMachine, uint32(1), // an executable
		uint64(base + headers), uint64(64), uint64(0), // entry, segments, no sections
		uint32(0), uint16(64), uint16(56), uint16(1), uint16(0), uint16(0), uint16(0),
		uint32(1), uint32(readExecute), // one segment to load
		uint64(0), uint64(base), uint64(base), size, size, uint64(page),
	} {
		if err := binary.Write(&file, binary.LittleEndian, field); err != nil {
			return nil, fmt.Errorf("making the pause program: %w", err)
		}
	}
	file.Write(program.code)
	return file.Bytes(), nil
}

// WritePauseImage writes the pause image as an archive to import.
func WritePauseImage(path string) error {
	program, err := pauseProgram(runtime.GOARCH)
	if err != nil {
		return err
	}
	layer, err := archive(entry{"pause", 0o755, program})
	if err != nil {
		return err
	}
	digest := sha256.Sum256(layer)
	config, err := json.Marshal(map[string]any{
		"os": "linux", "architecture": runtime.GOARCH,
		"config": map[string]any{"Entrypoint": []string{"/pause"}, "User": "65535:65535"},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(digest[:])}},
	})
	if err != nil {
		return fmt.Errorf("encoding the pause image: %w", err)
	}
	manifest, err := json.Marshal([]map[string]any{{
		"Config": "config.json", "RepoTags": []string{PauseImage}, "Layers": []string{"layer.tar"},
	}})
	if err != nil {
		return fmt.Errorf("encoding the pause image: %w", err)
	}
	image, err := archive(entry{"config.json", 0o644, config}, entry{"layer.tar", 0o644, layer}, entry{"manifest.json", 0o644, manifest})
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, image, 0o600); err != nil {
		return fmt.Errorf("writing the pause image: %w", err)
	}
	return nil
}

type entry struct {
	name    string
	mode    int64
	content []byte
}

func archive(entries ...entry) ([]byte, error) {
	var out bytes.Buffer
	writer := tar.NewWriter(&out)
	for _, e := range entries {
		if err := writer.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode, Size: int64(len(e.content))}); err != nil {
			return nil, fmt.Errorf("writing %s into an archive: %w", e.name, err)
		}
		if _, err := writer.Write(e.content); err != nil {
			return nil, fmt.Errorf("writing %s into an archive: %w", e.name, err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("writing an archive: %w", err)
	}
	return out.Bytes(), nil
}
