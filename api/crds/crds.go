// Package crds embeds the generated CustomResourceDefinitions, the only copy in the project: the
// fleet-crd chart and the tests take them from here.
package crds

import "embed"

// FS holds one YAML file per kind.
//
//go:embed *.yaml
var FS embed.FS
