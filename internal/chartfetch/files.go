package chartfetch

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"sync"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	helm "helm.sh/helm/v4/pkg/chart/v2"
	"sigs.k8s.io/yaml"

	"github.com/muster-fleet/muster/internal/yamlcheck"
)

// MaxEmbedded is the largest packed chart to embed in its Bundle. The files of a Bundle may have
// 1.1 MiB, compressed.
const MaxEmbedded = 900 << 10

// MaxUnpacked is the maximum number of bytes in the files of a chart.
const MaxUnpacked = 32 << 20

// unpacking lets one archive at a time be unpacked: it takes up to four times the memory of its
// largest file.
var unpacking sync.Mutex

// Unpack returns the files of the chart, with their paths in it. It refuses an archive with files
// of more than MaxUnpacked together before it holds any of them.
func (a *Archive) Unpack() ([]*archive.BufferedFile, error) {
	unpacking.Lock()
	defer unpacking.Unlock()
	if err := checkUnpacked(a.Data); err != nil {
		return nil, fmt.Errorf("unpacking chart %s: %w", a.From, err)
	}
	unpacked, err := archive.LoadArchiveFiles(bytes.NewReader(a.Data))
	if err != nil {
		return nil, fmt.Errorf("unpacking chart %s: %w", a.From, err)
	}
	return unpacked, nil
}

// errUnpacked is the error for an archive of a few KiB with files of gigabytes, or with millions of
// files.
var errUnpacked = fmt.Errorf("its files have more than %d MiB unpacked: remove what the chart does not need", MaxUnpacked>>20)

// checkUnpacked returns an error for an archive with too many bytes: with the headers of its files,
// or with the holes of sparse files.
func checkUnpacked(packed []byte) error {
	unzipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	bounded := &io.LimitedReader{R: unzipped, N: MaxUnpacked + 1}
	files, size := tar.NewReader(bounded), int64(0)
	for size <= MaxUnpacked && bounded.N > 0 {
		header, err := files.Next()
		switch {
		case bounded.N <= 0:
			return errUnpacked
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		size += header.Size
	}
	return errUnpacked
}

// Files returns the files of the chart by their paths in it, and its version.
func (a *Archive) Files() (files map[string][]byte, version string, err error) {
	unpacked, err := a.Unpack()
	if err != nil {
		return nil, "", err
	}
	files = map[string][]byte{}
	for _, file := range unpacked {
		files[file.Name] = file.Data
	}
	var metadata helm.Metadata
	if err := yamlcheck.Check(files["Chart.yaml"]); err != nil {
		return nil, "", fmt.Errorf("chart %s: Chart.yaml: %w", a.From, err)
	}
	if err := yaml.Unmarshal(files["Chart.yaml"], &metadata); err != nil || metadata.Version == "" {
		return nil, "", fmt.Errorf("chart %s has no Chart.yaml with a version", a.From)
	}
	return files, metadata.Version, nil
}
