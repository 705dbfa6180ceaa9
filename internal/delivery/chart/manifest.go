package chart

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// escaped returns a template that renders to exactly the manifest.
func escaped(name string, manifest []byte) *common.File {
	text := strings.ReplaceAll(string(manifest), "{{", `{{"{{"}}`)
	return &common.File{Name: "templates/" + name, Data: []byte(text)}
}

// contains is the content of a file.
type contains int

const (
	nothing contains = iota
	otherText
	objects
)

// checkYAML returns the content of a file, and an error for a broken document. A file of values or
// a kustomization of a subdirectory is other text.
func checkYAML(name string, data []byte) (contains, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	found := nothing
	var broken error
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		switch {
		case errors.Is(err, io.EOF) && isKustomization(name):
			return min(found, otherText), nil
		case errors.Is(err, io.EOF) && found != objects:
			return found, nil
		case errors.Is(err, io.EOF):
			return found, broken
		case err != nil:
			return found, fmt.Errorf("%s is no valid YAML: %w", name, err)
		case document.IsZero() || len(document.Content) == 0 || document.Content[0].Tag == yaml.NodeTagNull:
			continue
		}
		root := document.Content[0]
		if root.Kind == yaml.MappingNode && (field(root, "apiVersion") != nil || field(root, "kind") != nil) {
			found = objects
		}
		found = max(found, otherText)
		if broken == nil {
			broken = checkRoot(name, root)
		}
	}
}

// checkRoot returns an error if a document is no valid object.
func checkRoot(name string, root *yaml.Node) error {
	if root.Kind != yaml.MappingNode {
		return fmt.Errorf("%s, line %d: this is no Kubernetes object", name, root.Line)
	}
	for _, key := range []string{"apiVersion", "kind"} {
		if value := field(root, key); value == nil || value.Value == "" {
			return fmt.Errorf("%s, line %d: the object has no %s", name, root.Line, key)
		}
	}
	return nil
}

// isKustomization reports whether a file is a kustomization by its name.
func isKustomization(name string) bool {
	base := path.Base(name)
	return base == "kustomization.yaml" || base == "kustomization.yml"
}

// field returns the value of a key of a mapping.
func field(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}
