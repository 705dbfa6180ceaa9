package chart

import (
	"fmt"
	"path"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// kustomization finds the directory to build: where the options say, else the root if a kustomization is there.
func kustomization(files Files, options *fleet.KustomizeOptions) (string, bool) {
	if options != nil && options.Dir != "" {
		return path.Clean(options.Dir), true
	}
	for _, name := range []string{"kustomization.yaml", "kustomization.yml", "Kustomization"} {
		if _, found := files[name]; found {
			return ".", true
		}
	}
	return "", false
}

// runKustomize builds in memory: the kustomization sees the files of the Bundle and nothing of this machine.
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
		return nil, fmt.Errorf("encoding what the kustomization in directory %s built: %w", dir, err)
	}
	return text, nil
}
