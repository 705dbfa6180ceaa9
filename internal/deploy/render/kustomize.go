package render

import (
	"bytes"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/muster-fleet/muster/internal/deploy/chart"
)

// kustomized is the only template of a chart with a kustomization over it.
const kustomized = "templates/kustomized.yaml"

// kustomize builds the kustomization of an input over the rendered templates of its chart. Without
// a kustomization it returns the templates unchanged.
func kustomize(input Input, chartName string, files map[string]string) (map[string]string, error) {
	dir, over := chart.Over(input.Files, input.Archive != nil, input.Options)
	if !over {
		return files, nil
	}
	var manifests bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(files)) {
		base := path.Base(name)
		if strings.HasPrefix(base, "_") || base == "NOTES.txt" || strings.TrimSpace(files[name]) == "" {
			continue
		}
		manifests.WriteString("---\n" + files[name] + "\n")
	}
	built, err := chart.KustomizeOver(input.Files, dir, manifests.Bytes())
	if err != nil {
		return nil, err
	}
	return map[string]string{path.Join(chartName, kustomized): string(built)}, nil
}
