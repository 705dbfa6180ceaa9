package chart

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// escaped is a template that renders to exactly the manifest.
func escaped(name string, manifest []byte) *common.File {
	text := strings.ReplaceAll(string(manifest), "{{", `{{"{{"}}`)
	return &common.File{Name: "templates/" + name, Data: []byte(text)}
}

// checkYAML says which document of a file is none that a cluster could take.
func checkYAML(name string, data []byte) error {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%s is no valid YAML: %w", name, err)
		case document.IsZero() || len(document.Content) == 0 || document.Content[0].Tag == yaml.NodeTagNull:
			continue
		}
		root := document.Content[0]
		if root.Kind != yaml.MappingNode {
			return fmt.Errorf("%s, line %d: this is no Kubernetes object", name, root.Line)
		}
		for _, key := range []string{"apiVersion", "kind"} {
			if value := field(root, key); value == nil || value.Value == "" {
				return fmt.Errorf("%s, line %d: the object has no %s", name, root.Line, key)
			}
		}
	}
}

// field is the value of a key of a mapping.
func field(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}
