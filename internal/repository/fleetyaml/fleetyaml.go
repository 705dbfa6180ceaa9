// Package fleetyaml reads the file fleet.yaml of a repository.
//
// Its invariant: it is pure, and accepts only the keys of the schema. An error names the file and
// the line.
package fleetyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"

	yaml "go.yaml.in/yaml/v3"
	k8syaml "sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/yamlcheck"
)

// Names are the names of the file, in the order of their precedence.
var Names = []string{"fleet.yaml", "fleet.yml"}

// File is the content of a fleet.yaml: the options of a Bundle, and the Bundle's fields beside its
// spec.
type File struct {
	fleet.BundleSpec `json:",inline"`

	// Name of the Bundle; default by its GitRepo and directory.
	Name string `json:"name,omitempty"`
	// Labels of the Bundle, for dependsOn.selector of others.
	Labels map[string]string `json:"labels,omitempty"`
	// TargetCustomizations are options for some of the Clusters. They select no further Clusters.
	TargetCustomizations []fleet.BundleTarget `json:"targetCustomizations,omitempty"`
	// OverrideTargets replace the targets of the GitRepo.
	OverrideTargets []fleet.BundleTargetRestriction `json:"overrideTargets,omitempty"`
	// ImageScans are refused.
	ImageScans []any `json:"imageScans,omitempty"`
}

// refused are the keys of a Bundle forbidden in a fleet.yaml, with the remedy.
var refused = map[string]string{
	"resources":          "the files of the directory are the resources",
	"targets":            "write targetCustomizations or overrideTargets",
	"targetRestrictions": "write overrideTargets",
	"contentsId":         "the hub sets it",
	"helmOpOptions":      "a HelmOp sets it",
	"valuesHash":         "it belongs to the Secret with the values, which is made from helm.values",
	"imageScans":         "Muster scans no registries: have a tool such as Renovate write new tags into the repository",
}

// Parse reads a fleet.yaml. The name is for errors.
func Parse(name string, text []byte) (*File, error) {
	if err := yamlcheck.Check(text); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var root, second yaml.Node
	switch err := decoder.Decode(&root); {
	case errors.Is(err, io.EOF):
		return &File{}, nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := decoder.Decode(&second); err == nil {
		return nil, fmt.Errorf("%s:%d: a second document begins: write one document", name, second.Line)
	} else if !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	c := checker{file: name}
	c.check("", &root, reflect.TypeFor[File]())
	if err := errors.Join(c.errs...); err != nil {
		return nil, err
	}
	file := &File{}
	if err := k8syaml.Unmarshal(text, file); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return file, nil
}
