package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// group is one page with the kinds of one API group.
type group struct{ name, page, what string }

var groups = []group{
	{"fleet.cattle.io", "api-fleet.md", "Clusters and their workspaces, Bundles, and the other kinds of Rancher Fleet."},
	{"cluster.kubernetes-fleet.io", "api-cluster.md", "MemberClusters, and the report that all agents write."},
	{"placement.kubernetes-fleet.io", "api-placement.md", "Placements, and the objects that the hub and the agents write for them."},
	{"multicluster.x-k8s.io", "api-inventory.md", "The inventory, for tools that know nothing of fleets."},
	{"muster-fleet.github.io", "api-muster.md", "Kinds of Muster's own."},
}

// write returns the page of a group, from the definitions in the chart fleet-crd.
func (g group) write() (string, error) {
	files, err := filepath.Glob("api/crds/" + g.name + "_*.yaml")
	if err != nil || len(files) == 0 {
		return "", fmt.Errorf("finding definitions of %s: %d, %w", g.name, len(files), err)
	}
	var page strings.Builder
	fmt.Fprintf(&page, "# Kinds of %s\n\n%s%s\n\nA field with `[]` is a list, one with `{}` a map; for Kubernetes' own "+
		"types, such as an affinity, see its documentation. *Required* holds where the object around is there.\n", g.name, generated, g.what)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(data, &crd); err != nil {
			return "", fmt.Errorf("%s: %w", file, err)
		}
		kind(&page, crd)
	}
	return page.String(), nil
}

func kind(page *strings.Builder, crd apiextensionsv1.CustomResourceDefinition) {
	var served []string
	var stored apiextensionsv1.CustomResourceDefinitionVersion
	for _, version := range crd.Spec.Versions {
		if version.Served {
			served = append(served, code(version.Name))
		}
		if version.Storage {
			stored = version
		}
	}
	schema := stored.Schema.OpenAPIV3Schema
	fmt.Fprintf(page, "\n## %s\n\n%s\n\n", crd.Spec.Names.Kind, cell(schema.Description))
	scope := "in a namespace"
	if crd.Spec.Scope == apiextensionsv1.ClusterScoped {
		scope = "cluster-scoped"
	}
	names := append([]string{crd.Spec.Names.Plural}, crd.Spec.Names.ShortNames...)
	fmt.Fprintf(page, "`%s`, %s, %s.\n\n| field | type | meaning |\n| --- | --- | --- |\n",
		strings.Join(names, "`, `"), scope, strings.Join(served, " and "))
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		if !slices.Contains([]string{"apiVersion", "kind", "metadata"}, name) {
			field(page, name, schema.Properties[name], false)
		}
	}
}

// field writes the rows of a field and its inner fields.
func field(page *strings.Builder, path string, schema apiextensionsv1.JSONSchemaProps, required bool) {
	description := cell(schema.Description)
	if required {
		description = "*Required.* " + description
	}
	if schema.Default != nil {
		description += " Default: " + code(string(schema.Default.Raw)) + "."
	}
	if len(schema.Enum) > 0 {
		var values []string
		for _, value := range schema.Enum {
			values = append(values, code(strings.Trim(string(value.Raw), `"`)))
		}
		description += " One of " + strings.Join(values, ", ") + "."
	}
	kind, within := typeOf(schema)
	fmt.Fprintf(page, "| `%s` | %s | %s |\n", path, kind, strings.TrimSpace(description))
	switch {
	case kubernetesOwn(path):
		return
	case schema.Type == "array":
		path += "[]"
	case schema.AdditionalProperties != nil:
		path += "{}"
	}
	for _, name := range slices.Sorted(maps.Keys(within.Properties)) {
		field(page, path+"."+name, within.Properties[name], slices.Contains(within.Required, name))
	}
}

// typeOf returns the type of a field in words, and its inner schema.
func typeOf(schema apiextensionsv1.JSONSchemaProps) (string, apiextensionsv1.JSONSchemaProps) {
	switch {
	case schema.XIntOrString:
		return "integer or string", schema
	case schema.Type == "array" && schema.Items != nil && schema.Items.Schema != nil:
		kind, within := typeOf(*schema.Items.Schema)
		return "list of " + kind, within
	case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
		kind, within := typeOf(*schema.AdditionalProperties.Schema)
		return "map of " + kind, within
	case schema.Type == "string" && schema.Format != "":
		return "string (" + schema.Format + ")", schema
	case schema.Type == "":
		return "any", schema
	}
	return schema.Type, schema
}

// kubernetesOwn reports whether a field has a type of Kubernetes. This reference does not describe
// the fields of such a type.
func kubernetesOwn(path string) bool {
	name := path[strings.LastIndex(path, ".")+1:]
	return slices.Contains([]string{"affinity", "agentAffinity", "agentTolerations", "tolerations", "agentEnvVars", "conditions",
		"matchExpressions", "agentResources", "podDisruptionBudget"}, name)
}
