// Package chart makes the Helm chart of a Bundle from its files. It takes a chart directory as it
// is, and wraps plain YAML and the output of kustomize into a chart. A kustomization beside a chart
// is built over the rendered chart.
//
// Its invariant: it is pure and reads only the files of the Bundle. An error names the file and,
// for YAML, the line.
package chart

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	helm "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/yamlcheck"
)

// maxOthers is the maximum number of files in a message.
const maxOthers = 3

// Files are the files of a Bundle by path.
type Files map[string][]byte

// Unsupported is the error for a field without an implementation.
type Unsupported struct {
	// Field is its path in the BundleDeployment.
	Field string
	// Instead is the remedy.
	Instead string
}

// Error describes the field and the remedy.
func (u *Unsupported) Error() string {
	return fmt.Sprintf("%s is not implemented by this agent: %s", u.Field, u.Instead)
}

// Decode returns the files of a Bundle.
func Decode(resources []fleet.BundleResource) (Files, error) {
	files := Files{}
	for i, resource := range resources {
		name := path.Clean(strings.TrimPrefix(resource.Name, "/"))
		if resource.Name == "" {
			name = fmt.Sprintf("manifest-%03d.yaml", i)
		}
		if strings.HasPrefix(name, "../") {
			return nil, fmt.Errorf("resource %s lies outside of the Bundle", resource.Name)
		}
		if _, twice := files[name]; twice {
			return nil, fmt.Errorf("the Bundle has two resources named %s", name)
		}
		data, err := delivery.File(resource)
		if err != nil {
			return nil, err
		}
		files[name] = data
	}
	return files, nil
}

// Release returns the release of a BundleDeployment: its name, and the namespace of the objects
// without one.
func Release(deployment string, options fleet.BundleDeploymentOptions) (name, namespace string) {
	if options.Helm != nil {
		name = options.Helm.ReleaseName
	}
	if name == "" {
		name = naming.Release(deployment)
	}
	return name, cmp.Or(options.TargetNamespace, options.DefaultNamespace, metav1.NamespaceDefault)
}

// Build makes the chart and its values, except for values from elsewhere. The name is for a
// wrapping chart, the version is the version of the content. fetched is a chart from elsewhere;
// else nil.
func Build(files Files, fetched *helm.Chart, name, version string,
	options fleet.BundleDeploymentOptions) (*helm.Chart, map[string]any, error) {
	helmOptions := fleet.HelmOptions{}
	if options.Helm != nil {
		helmOptions = *options.Helm
	}
	dir, found := chartDir(files, helmOptions.Chart)
	isChart := found || fetched != nil
	switch {
	case !isChart && helmOptions.Chart != "":
		return nil, nil, fmt.Errorf("spec.options.helm.chart names %s, where the Bundle has no Chart.yaml: put the chart there, or say in "+
			"helm.repo where it is", helmOptions.Chart)
	case isChart && hasOverlays(options):
		return nil, nil, &Unsupported{Field: "spec.options.yaml.overlays", Instead: "overlays are for plain YAML; a chart has values"}
	}
	if err := checkCosts(files, isChart); err != nil {
		return nil, nil, err
	}
	values, err := valuesOf(files, helmOptions.ValuesFiles)
	if err != nil {
		return nil, nil, err
	}
	built := fetched
	switch {
	case fetched != nil:
	case found:
		built, err = load(files, dir, helmOptions.DisableDependencyUpdate)
	default:
		built, err = wrap(files, name, version, options)
	}
	if err != nil {
		return nil, nil, err
	}
	return built, values, nil
}

// checkCosts returns an error if a file would take a parser too much memory. Templates of a chart
// count as text until they are rendered.
func checkCosts(files Files, isChart bool) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		isTemplate := isChart && strings.Contains("/"+name, "/templates/")
		if isTemplate || !isManifest(name) && path.Base(name) != "Kustomization" {
			continue
		}
		if err := yamlcheck.Check(files[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// chartDir finds the chart among the files: at the path in the options, else the Chart.yaml nearest
// to the root.
func chartDir(files Files, wanted string) (string, bool) {
	if wanted != "" {
		dir := path.Clean(wanted)
		_, found := files[path.Join(dir, "Chart.yaml")]
		return dir, found
	}
	best, found := "", false
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path.Base(name) != "Chart.yaml" {
			continue
		}
		if dir := path.Dir(name); !found || strings.Count(dir, "/") < strings.Count(best, "/") || dir == "." {
			best, found = dir, true
		}
	}
	return best, found
}

func load(files Files, dir string, incomplete bool) (*helm.Chart, error) {
	var buffered []*archive.BufferedFile
	for _, name := range slices.Sorted(maps.Keys(files)) {
		inside, ok := below(name, dir)
		if !ok {
			continue
		}
		buffered = append(buffered, &archive.BufferedFile{Name: inside, Data: files[name]})
	}
	made, err := loader.LoadFiles(buffered)
	if err != nil {
		return nil, fmt.Errorf("loading the chart in directory %s of the Bundle: %w", dir, err)
	}
	// The other fields have the loaded content, and a release stores the whole chart.
	made.Raw = nil
	return made, complete(made, incomplete)
}

// complete returns an error if a chart lacks dependencies, unless the options allow an incomplete
// chart.
func complete(built *helm.Chart, incomplete bool) error {
	if incomplete {
		return nil
	}
	for _, dependency := range built.Metadata.Dependencies {
		if !slices.ContainsFunc(built.Dependencies(), func(c *helm.Chart) bool { return c.Name() == dependency.Name }) {
			return fmt.Errorf("chart %s depends on chart %s, which is not in its directory charts: run helm dependency build before the Bundle is "+
				"made, or set helm.disableDependencyUpdate to deploy it without",
				built.Name(), dependency.Name)
		}
	}
	return nil
}

// below returns the path relative to a directory.
func below(name, dir string) (string, bool) {
	if dir == "." || dir == "" {
		return name, true
	}
	return strings.CutPrefix(name, dir+"/")
}

var notInVersion = regexp.MustCompile(`[^0-9A-Za-z-]`)

// wrap puts manifests into a chart. Templates in them are text.
func wrap(files Files, name, version string, options fleet.BundleDeploymentOptions) (*helm.Chart, error) {
	manifests, err := manifestsOf(files, options)
	if err != nil {
		return nil, err
	}
	wrapper := &helm.Chart{Metadata: &helm.Metadata{
		APIVersion: helm.APIVersionV2, Name: name, Version: "v0.0.0+" + notInVersion.ReplaceAllString(version, "-"),
	}}
	var others []string
	for _, file := range slices.Sorted(maps.Keys(manifests)) {
		switch found, err := checkYAML(file, manifests[file]); {
		case err != nil:
			return nil, err
		case found == objects:
			wrapper.Templates = append(wrapper.Templates, escaped(file, manifests[file]))
		case found == otherText:
			others = append(others, file)
		}
	}
	if len(wrapper.Templates) == 0 && len(others) > 0 {
		return nil, fmt.Errorf("no file of the Bundle has a Kubernetes object, with apiVersion and kind: %s",
			kube.JoinNames(others[:min(len(others), maxOthers)], len(others)))
	}
	return wrapper, nil
}

func manifestsOf(files Files, options fleet.BundleDeploymentOptions) (Files, error) {
	dir, kustomize := kustomization(files, options.Kustomize)
	if kustomize && hasOverlays(options) {
		return nil, &Unsupported{Field: "spec.options.yaml.overlays", Instead: "overlays are for plain YAML; a kustomization has its own"}
	}
	if kustomize {
		built, err := runKustomize(files, dir)
		if err != nil {
			return nil, err
		}
		return Files{"kustomized.yaml": built}, nil
	}
	overlaid, err := overlay(files, options.YAML)
	if err != nil {
		return nil, err
	}
	for name := range overlaid {
		if !isManifest(name) {
			delete(overlaid, name)
		}
	}
	return overlaid, nil
}

func hasOverlays(options fleet.BundleDeploymentOptions) bool {
	return options.YAML != nil && len(options.YAML.Overlays) > 0
}

func isManifest(name string) bool {
	if base := path.Base(name); base == "fleet.yaml" || strings.HasPrefix(base, ".") {
		return false
	}
	switch path.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// valuesOf merges values files of the Bundle, later ones over earlier ones. A missing file was
// merged into the values by the creator of the Bundle, as with upstream's command.
func valuesOf(files Files, names []string) (map[string]any, error) {
	merged := map[string]any{}
	for _, name := range names {
		data, found := files[path.Clean(name)]
		if !found {
			continue
		}
		var values map[string]any
		if err := yaml.Unmarshal(data, &values); err != nil {
			return nil, fmt.Errorf("reading the values file %s: %w", name, err)
		}
		merged = loader.MergeMaps(merged, values)
	}
	return merged, nil
}
