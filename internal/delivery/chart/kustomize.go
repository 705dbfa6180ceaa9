package chart

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// kustomization finds the directory to build: the one in the options, else the root if it has a
// kustomization.
func kustomization(files Files, options *fleet.KustomizeOptions) (string, bool) {
	if options != nil && options.Dir != "" {
		return path.Clean(options.Dir), true
	}
	_, found := kustomizationFile(files, ".")
	return ".", found
}

// kustomizationFile returns the kustomization in a directory.
func kustomizationFile(files Files, dir string) (string, bool) {
	for _, base := range []string{"kustomization.yaml", "kustomization.yml", "Kustomization"} {
		if name := path.Join(dir, base); files[name] != nil {
			return name, true
		}
	}
	return "", false
}

// Over returns the directory of the kustomization over the manifests of a chart, and whether there
// is one.
func Over(files Files, fetched bool, options fleet.BundleDeploymentOptions) (string, bool) {
	wanted := ""
	if options.Helm != nil {
		wanted = options.Helm.Chart
	}
	if _, isChart := chartDir(files, wanted); !isChart && !fetched {
		return "", false
	}
	return kustomization(files, options.Kustomize)
}

// rendered is the file with the chart's manifests for a kustomization over a chart.
const rendered = "muster-rendered-chart.yaml"

// KustomizeOver builds a kustomization with the manifests of a chart as one more of its resources.
func KustomizeOver(files Files, dir string, manifests []byte) ([]byte, error) {
	name, found := kustomizationFile(files, dir)
	if !found {
		return nil, fmt.Errorf("spec.options.kustomize.dir names %s, where the Bundle has no kustomization.yaml", dir)
	}
	text, err := yaml.YAMLToJSON(files[name])
	if err != nil {
		return nil, fmt.Errorf("reading the kustomization %s: %w", name, err)
	}
	file := map[string]any{}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("reading the kustomization %s: %w", name, err)
	}
	if file == nil {
		file = map[string]any{}
	}
	resources, isList := file["resources"].([]any)
	if file["resources"] != nil && !isList {
		return nil, fmt.Errorf("the kustomization %s has resources that are no list", name)
	}
	file["resources"] = append(resources, rendered)
	if text, err = json.Marshal(file); err != nil {
		return nil, fmt.Errorf("encoding the kustomization %s: %w", name, err)
	}
	files = maps.Clone(files)
	files[name], files[path.Join(dir, rendered)] = text, manifests
	return runKustomize(files, dir)
}

// runKustomize builds in memory: the kustomization sees only the files of the Bundle.
func runKustomize(files Files, dir string) ([]byte, error) {
	memory := filesys.MakeFsInMemory()
	for name, data := range files {
		if err := memory.WriteFile(path.Join("/", name), data); err != nil {
			return nil, fmt.Errorf("copying %s for kustomize: %w", name, err)
		}
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(memory, path.Join("/", dir))
	if err != nil {
		return nil, fmt.Errorf("building the kustomization in directory %s of the Bundle: %w", dir, err)
	}
	text, err := built.AsYaml()
	if err != nil {
		return nil, fmt.Errorf("encoding the output of the kustomization in directory %s: %w", dir, err)
	}
	return text, nil
}
