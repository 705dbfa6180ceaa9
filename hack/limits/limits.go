// Command limits narrows what markers in api/ do not reach: the fields of Kubernetes' own types, in
// the CRDs whose files it is given. They get maxima, and they permit only what a program can read.
// A client lists whole kinds: an object with a time or a number that it cannot decode hides all
// others from it. It also adds a version to those CRDs that KubeFleet once stored in it.
//
// Its invariant: a maximum that a marker has set is never made larger.
package main

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const (
	// maxScalar is how long the text of a time, a quantity or a number in percent is; the schema's own
	// patterns and formats bound none of them.
	maxScalar = 64
	// maxText, maxItems and maxEntries are of the texts, lists and maps in Kubernetes' types.
	maxText, maxItems, maxEntries = 4096, 256, 256
	// What a condition in a report, or in the MemberCluster that shows it, may say: a report has up to
	// forty of them, and Kubernetes' own maximum is 32768 for each.
	maxReportMessage, maxReportReason = 2048, 128
)

// kubernetesTypes are fields whose types are Kubernetes' own.
var kubernetesTypes = map[string]bool{
	"agentAffinity": true, "agentEnvVars": true, "agentPullSecrets": true, "agentResources": true, "agentTolerations": true,
	"allowedTargetNamespaceSelector": true, "bundleSelector": true, "clusterGroupSelector": true, "identity": true,
	"labelSelector": true, "namespaceSelector": true, "selector": true,
}

// Patterns of what Go reads. A schema's format permits more: lower case, any sign before a
// fraction of a second, any text after a second "t". In the year 1 is the zero time, which is
// written back as null.
const (
	patternTime      = `^[1-9]\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`
	patternMicroTime = `^[1-9]\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`
)

// microTimes are fields whose times have microseconds, no more and no fewer digits.
var microTimes = map[string]bool{"requestedAt": true, "begun": true}

// versionBefore is served beside v1beta1 for the kinds below, with the same fields: hubs of
// KubeFleet that were installed before July 2025 have stored them in it, and an API server does not
// let go of a version that was stored.
const versionBefore = "v1alpha1"

var hadVersionBefore = map[string]bool{
	"placement.kubernetes-fleet.io_clusterresourceoverrides.yaml": true, "placement.kubernetes-fleet.io_resourceoverrides.yaml": true,
	"placement.kubernetes-fleet.io_clusterresourceplacementevictions.yaml":         true,
	"placement.kubernetes-fleet.io_clusterresourceplacementdisruptionbudgets.yaml": true,
}

func main() {
	for _, name := range os.Args[1:] {
		if err := limit(name); err != nil {
			fmt.Fprintf(os.Stderr, "setting maxima in %s: %v\n", name, err)
			os.Exit(1)
		}
	}
}

// limit rewrites one file.
func limit(name string) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	// Decoded without a type, so that what the generator left out stays out.
	var definition map[string]any
	if err := yaml.Unmarshal(data, &definition); err != nil {
		return err
	}
	report := strings.HasSuffix(filepath.Base(name), "_internalmemberclusters.yaml") ||
		strings.HasSuffix(filepath.Base(name), "_memberclusters.yaml")
	spec := definition["spec"].(map[string]any)
	versions := spec["versions"].([]any)
	for _, version := range versions {
		schema := version.(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
		walk(schema, "", false, report)
	}
	if hadVersionBefore[filepath.Base(name)] {
		spec["versions"] = append(versions, before(versions))
	}
	if err := check(definition); err != nil {
		return err
	}
	out, err := yaml.Marshal(definition)
	if err != nil {
		return err
	}
	return os.WriteFile(name, append([]byte("---\n"), out...), 0o644)
}

// before is the version of KubeFleet's early hubs, a copy of the one that is stored.
func before(versions []any) map[string]any {
	for _, version := range versions {
		if stored := version.(map[string]any); stored["storage"] == true {
			old := maps.Clone(stored)
			old["name"], old["storage"], old["deprecated"] = versionBefore, false, true
			return old
		}
	}
	panic("a definition stores no version")
}

// check says whether what is written is a CustomResourceDefinition still.
func check(definition map[string]any) error {
	data, err := yaml.Marshal(definition)
	if err != nil {
		return err
	}
	return yaml.UnmarshalStrict(data, &apiextensionsv1.CustomResourceDefinition{})
}

// walk sets the maxima of a schema and of what is in it. field is the property that it is of;
// foreign says that its type is Kubernetes' own.
func walk(schema map[string]any, field string, foreign, report bool) {
	foreign = foreign || kubernetesTypes[field] || field == "clusterSelector" && properties(schema)["matchLabels"] != nil
	readable(schema, field)
	switch {
	case schema["x-kubernetes-int-or-string"] == true, schema["format"] == "date-time":
		atMost(schema, "maxLength", maxScalar)
	case schema["type"] == "string" && foreign && schema["enum"] == nil:
		atMost(schema, "maxLength", maxText)
	case schema["type"] == "array" && foreign:
		atMost(schema, "maxItems", maxItems)
	}
	if items, ok := schema["items"].(map[string]any); ok {
		if report && field == "conditions" {
			condition := properties(items)
			atMost(condition["message"].(map[string]any), "maxLength", maxReportMessage)
			atMost(condition["reason"].(map[string]any), "maxLength", maxReportReason)
			atMost(condition["type"].(map[string]any), "maxLength", maxReportReason)
		}
		walk(items, "", foreign, report)
	}
	if values, ok := schema["additionalProperties"].(map[string]any); ok {
		if foreign {
			atMost(schema, "maxProperties", maxEntries)
		}
		walk(values, "", foreign, report)
	}
	for name, property := range properties(schema) {
		walk(property.(map[string]any), name, foreign, report)
	}
}

// readable permits only what a field's type in Go can hold.
func readable(schema map[string]any, field string) {
	switch {
	case schema["x-kubernetes-int-or-string"] == true && !isQuantity(schema):
		schema["minimum"], schema["maximum"] = math.MinInt32, math.MaxInt32
	case schema["type"] != "string" || schema["format"] == nil:
		return
	case microTimes[field]:
		schema["pattern"] = patternMicroTime
	case schema["format"] == "date-time":
		schema["pattern"] = patternTime
	}
	if schema["type"] == "string" {
		// The API server takes a list for a text that has a format. No list has so many entries.
		schema["minItems"], schema["maxItems"] = 2, 1
	}
}

// isQuantity reports whether a schema is that of a quantity, whose pattern knows the units.
func isQuantity(schema map[string]any) bool {
	pattern, _ := schema["pattern"].(string)
	return strings.Contains(pattern, "Ki")
}

// properties are those of a schema of an object, none of another.
func properties(schema map[string]any) map[string]any {
	all, _ := schema["properties"].(map[string]any)
	return all
}

// atMost sets a maximum, unless there is a smaller one.
func atMost(schema map[string]any, keyword string, limit int64) {
	if has, ok := schema[keyword].(float64); ok && int64(has) <= limit {
		return
	}
	schema[keyword] = limit
}
