package chart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"text/template"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	helm "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// Kustomized is the only template of a chart with a kustomization over it.
const Kustomized = "templates/kustomized.yaml"

// ErrArchive is the error of an unreadable archive.
var ErrArchive = errors.New("the archive cannot be loaded")

// ArchiveError is an ErrArchive with its text.
type ArchiveError struct{ Text string }

func (e *ArchiveError) Error() string { return e.Text }

// Is reports whether the target is ErrArchive.
func (e *ArchiveError) Is(target error) bool { return target == ErrArchive }

// Input is the input of a chart.
type Input struct {
	Files   Files
	Archive *Archive
	Options fleet.BundleDeploymentOptions
	// Name and Content name a wrapping chart.
	Name, Content string
	// Own and From are further values. Own overrides the values in the Bundle's files, and From
	// overrides both.
	Own, From map[string]any
}

// Templates is the input of the templates.
type Templates struct {
	Values       map[string]any
	Release      common.ReleaseOptions
	Capabilities *common.Capabilities
	EnableDNS    bool
	// NoSchema is set if values are not checked.
	NoSchema bool
}

// Lookup is the function lookup of templates.
type Lookup = func(apiVersion, kind, namespace, name string) (map[string]any, error)

// Load builds the chart of an input, and its values.
func (input Input) Load() (*helm.Chart, map[string]any, error) {
	fetched, err := input.Archive.Load()
	if err != nil {
		return nil, nil, &ArchiveError{err.Error()}
	}
	made, values, err := Build(input.Files, fetched, input.Name, input.Content, input.Options)
	if err != nil {
		return nil, nil, err
	}
	// As with Rancher Fleet's agents, values on the cluster take precedence over the Bundle.
	return made, loader.MergeMaps(loader.MergeMaps(values, input.Own), input.From), nil
}

// Render renders the templates of a loaded chart as Helm does, and builds the kustomization over
// them. It returns the texts by the full names of their templates.
func (input Input) Render(loaded *helm.Chart, with Templates, look Lookup) (map[string]string, error) {
	if err := chartutil.ProcessDependencies(loaded, with.Values); err != nil {
		return nil, fmt.Errorf("chart dependencies processing failed: %w", err)
	}
	values, err := util.ToRenderValuesWithSchemaValidation(loaded, with.Values, with.Release, with.Capabilities, with.NoSchema)
	if err != nil {
		return nil, err
	}
	templates := engine.Engine{EnableDNS: with.EnableDNS, CustomTemplateFuncs: template.FuncMap{"lookup": look}}
	files, err := templates.RenderWithContext(context.Background(), loaded, values)
	if err != nil {
		return nil, err
	}
	return input.kustomize(loaded.Name(), files)
}

// kustomize builds the kustomization of an input over the rendered templates of its chart. Without
// a kustomization it returns the templates unchanged.
func (input Input) kustomize(chartName string, files map[string]string) (map[string]string, error) {
	dir, over := Over(input.Files, input.Archive != nil, input.Options)
	if !over {
		return files, nil
	}
	built, err := KustomizeOver(input.Files, dir, Manifests(files))
	if err != nil {
		return nil, err
	}
	return map[string]string{path.Join(chartName, Kustomized): string(built)}, nil
}

// Manifests returns the rendered manifests as a stream of YAML documents, without partials and
// notes.
func Manifests(files map[string]string) []byte {
	var manifests bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(files)) {
		base := path.Base(name)
		if strings.HasPrefix(base, "_") || base == "NOTES.txt" || strings.TrimSpace(files[name]) == "" {
			continue
		}
		manifests.WriteString("---\n" + files[name] + "\n")
	}
	return manifests.Bytes()
}
