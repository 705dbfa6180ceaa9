package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"time"
)

// pack writes files into an archive, with a single time and without an owner.
func pack(path string, modTime time.Time, files map[string]string) (err error) {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	packed := gzip.NewWriter(out)
	archive := tar.NewWriter(packed)
	defer func() { err = errors.Join(err, archive.Close(), packed.Close(), out.Close()) }()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := add(archive, name, files[name], modTime); err != nil {
			return err
		}
	}
	return nil
}

func add(archive *tar.Writer, name, path string, modTime time.Time) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	mode := int64(0o644)
	if info.Mode()&0o100 != 0 {
		mode = 0o755
	}
	header := &tar.Header{Name: name, Mode: mode, Size: info.Size(), ModTime: modTime, Format: tar.FormatUSTAR}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(archive, file)
	return err
}
