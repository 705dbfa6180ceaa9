package chartfetch

import (
	"bytes"
	"fmt"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	helm "helm.sh/helm/v4/pkg/chart/v2"
	"sigs.k8s.io/yaml"
)

// MaxEmbedded is the largest packed chart that becomes a part of its Bundle. The files of a Bundle
// may have 1.1 MiB, compressed.
const MaxEmbedded = 900 << 10

// Files returns the files of the chart by their paths in it, and its version.
func (a *Archive) Files() (files map[string][]byte, version string, err error) {
	unpacked, err := archive.LoadArchiveFiles(bytes.NewReader(a.Data))
	if err != nil {
		return nil, "", fmt.Errorf("unpacking chart %s: %w", a.From, err)
	}
	files = map[string][]byte{}
	for _, file := range unpacked {
		files[file.Name] = file.Data
	}
	var metadata helm.Metadata
	if err := yaml.Unmarshal(files["Chart.yaml"], &metadata); err != nil || metadata.Version == "" {
		return nil, "", fmt.Errorf("chart %s has no Chart.yaml with a version", a.From)
	}
	return files, metadata.Version, nil
}
