package chart

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

const (
	overlaysDir = "overlays"
	patchSuffix = "_patch"
)

// overlay applies the chosen overlays to the files. A file of an overlay replaces the file of the
// same path, or is added. A file with a name ending in _patch, such as web_patch.yaml, patches it:
// a list is a JSON patch, anything else a merge patch.
func overlay(files Files, options *fleet.YAMLOptions) (Files, error) {
	result := Files{}
	for name, data := range files {
		if _, inside := below(name, overlaysDir); !inside {
			result[name] = data
		}
	}
	if options == nil {
		return result, nil
	}
	for _, chosen := range options.Overlays {
		found := false
		for _, name := range slices.Sorted(maps.Keys(files)) {
			target, inside := below(name, path.Join(overlaysDir, chosen))
			if !inside {
				continue
			}
			found = true
			if err := lay(result, target, name, files[name]); err != nil {
				return nil, err
			}
		}
		if !found {
			return nil, fmt.Errorf("spec.options.yaml.overlays names %s, but no resource of the Bundle is below %s",
				chosen, path.Join(overlaysDir, chosen))
		}
	}
	return result, nil
}

func lay(result Files, target, source string, data []byte) error {
	extension := path.Ext(target)
	base, isPatch := strings.CutSuffix(strings.TrimSuffix(target, extension), patchSuffix)
	if !isPatch {
		result[target] = data
		return nil
	}
	patched := base + extension
	old, found := result[patched]
	if !found {
		return fmt.Errorf("%s patches %s, which is not among the resources of the Bundle", source, patched)
	}
	changed, err := applyPatch(old, data)
	if err != nil {
		return fmt.Errorf("patching %s with %s: %w", patched, source, err)
	}
	result[patched] = changed
	return nil
}

func applyPatch(document, patch []byte) ([]byte, error) {
	document, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, err
	}
	patch, err = yaml.YAMLToJSON(patch)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(strings.TrimSpace(string(patch)), "[") {
		return jsonpatch.MergePatch(document, patch)
	}
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, err
	}
	return operations.Apply(document)
}
