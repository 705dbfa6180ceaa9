// Command limits restricts the fields of Kubernetes' own types in the given CRD files, because
// markers in api/ do not reach them. It sets maxima, and permits only values readable by a program.
//
// A client lists whole kinds: an object with an undecodable time or number hides all others from
// it. The command also adds a version to the CRDs once stored by KubeFleet in that version.
//
// Its invariant: it never increases a maximum from a marker.
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
	// maxScalar is the maximum length of a time, a quantity or a number in percent as text. The
	// schema's own patterns and formats have no limit.
	maxScalar = 64
	// maxText, maxItems and maxEntries are the limits of texts, lists and maps in Kubernetes' types.
	maxText, maxItems, maxEntries = 4096, 256, 256
	// maxReportMessage and maxReportReason are the limits of a condition in a report, or in its
	// MemberCluster. A report has up to forty conditions, and Kubernetes' own maximum is 32768 for
	// each.
	maxReportMessage, maxReportReason = 2048, 128
)

// kubernetesTypes are the fields of Kubernetes' own types.
var kubernetesTypes = map[string]bool{
	"agentAffinity": true, "agentEnvVars": true, "agentPullSecrets": true, "agentResources": true, "agentTolerations": true,
	"allowedTargetNamespaceSelector": true, "bundleSelector": true, "clusterGroupSelector": true, "identity": true,
	"labelSelector": true, "namespaceSelector": true, "selector": true,
}

// Patterns of values readable by Go. A schema's format permits more: lower case, any sign before a
// fraction of a second, any text after a second "t". The year 1 is excluded, because the zero time
// is in it, written back as null.
const (
	patternTime      = `^[1-9]\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`
	patternMicroTime = `^[1-9]\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`
)

// microTimes are the fields with times in microseconds, with exactly six digits.
var microTimes = map[string]bool{"requestedAt": true, "begun": true}

// versionBefore is served beside v1beta1 for the kinds below, with the same fields. Hubs of
// KubeFleet from before July 2025 have stored objects in this version. An API server must keep
// serving a version once stored.
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
	// Decoding without a type keeps fields absent if the generator omitted them.
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

// before returns the version of KubeFleet's early hubs, a copy of the stored one.
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

// check returns an error unless the result is still a CustomResourceDefinition.
func check(definition map[string]any) error {
	data, err := yaml.Marshal(definition)
	if err != nil {
		return err
	}
	return yaml.UnmarshalStrict(data, &apiextensionsv1.CustomResourceDefinition{})
}

// walk sets the maxima of a schema and everything in it. field is the property of the schema;
// foreign is set if its type is Kubernetes' own.
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

// readable limits a field to values of its type in Go.
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
		// The API server accepts a list for a text with a format. No list can have so many entries.
		schema["minItems"], schema["maxItems"] = 2, 1
	}
}

// isQuantity reports whether a schema is for a quantity: its pattern has the units.
func isQuantity(schema map[string]any) bool {
	pattern, _ := schema["pattern"].(string)
	return strings.Contains(pattern, "Ki")
}

// properties returns the properties in the schema of an object; none for any other schema.
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
