package redaction

import (
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// drifted matches the changes of an object in a drift message.
var drifted = regexp.MustCompile(`(?s) modified \{.*`)

// quoted matches quoted values in messages: of API servers (field errors of apimachinery, and
// type errors of server-side apply), strconv, JSON schemas and templates. The text before the
// value stays. In a JSON log line, quotes are escaped with a backslash.
var quoted = regexp.MustCompile(`((?:Invalid|Unsupported|Duplicate) value: |Not found: |\bparsing )` +
	`(?:"(?:[^"\\]|\\.)*"|\\"(?:[^\\]|\\\\\\"|\\\\)*?\\"|[^\s:;,"]*[{\[][^\n]*[}\]]|[^\s:;,]+)` +
	`|(got )(?:&|\\u0026)[^\s{]*\{[^\n]*\}` +
	`|(can't iterate over )[^\n]*` +
	`|(execution error at \([^()\n]*\): )[^\n]*` +
	`|()'[^'\n]*'( (?:does not match pattern|is not valid))`)

// Scrub removes secrets, changes of drifted objects, and quoted values from a text.
func Scrub(text string) string {
	text = drifted.ReplaceAllString(text, " modified "+Mark)
	return Text(quoted.ReplaceAllString(text, "${1}${2}${3}${4}${5}"+Mark+"${6}"))
}

// hidden lists the fields with possible secrets of users or agents, by kind or for all kinds.
var hidden = map[string][][]string{
	"":                         {{"metadata", "managedFields"}},
	"ClusterRegistration":      {{"spec", "clientRandom"}, {"status", "answer"}},
	"ClusterRegistrationToken": {{"status", "rotation", "requested"}}, // a copy of an annotation
	"Content":                  {{"content"}},
	"Work":                     {{"spec", "workload"}},
	"InternalMemberCluster":    {{"spec", "credential", "sealed"}},
}

// maybeSecret reports whether a field may hold a secret: the data of a Secret, files and values of
// Bundles, or chart options of HelmOps. Values of overrides, differences on members, and the
// environment, arguments and command of containers, and addresses in Policies, count, too.
func maybeSecret(kind string, fields map[string]any, key string) bool {
	switch key {
	case "data", "binaryData":
		return kind != "ConfigMap"
	case "stringData", "content", "overlays", "args", "command", "patch", "valueInHub", "valueInMember", "volumeAttributes",
		"gmsaCredentialSpec":
		return true
	case "options": // of a volume
		_, driver := fields["driver"]
		return driver
	case "standbyToken": // sealed to the key of one agent
		return true
	case "helmOpOptions", "helmChartOptions", "reportBackStrategy":
		return true
	case "allowedRepoPatterns", "allowedHelmRepoPatterns", "allowedChartPatterns", "helmRepoURLRegex": // addresses
		return true
	case "imageScanCommit": // names of people
		return true
	case "cluster": // access to the cluster of a ClusterProfile
		return kind == "ClusterProfile"
	case "values", "valuesFiles", "templateValues":
		_, selects := fields["operator"]
		return !selects
	case "value":
		_, variable := fields["name"]
		_, patch := fields["op"]
		return variable || patch
	}
	return false
}

// Object removes possible secrets from an object.
func Object(o *unstructured.Unstructured) {
	for _, path := range append(hidden[""], hidden[o.GetKind()]...) {
		unstructured.RemoveNestedField(o.Object, path...)
	}
	o.Object = redactIn(o.Object, o.GetKind()).(map[string]any)
}

func redactIn(value any, kind string) any {
	switch value := value.(type) {
	case string:
		return Scrub(value)
	case []any:
		for i := range value {
			value[i] = redactIn(value[i], kind)
		}
	case map[string]any:
		for key, below := range value {
			switch fields, isMap := below.(map[string]any); {
			case isMap && strings.HasSuffix(strings.ToLower(key), "annotations"):
				value[key] = ofAnnotations(fields)
			case maybeSecret(kind, value, key):
				value[key] = namesOnly(below)
			default:
				value[key] = redactIn(below, kind)
			}
		}
	}
	return value
}

// theirAnnotations matches the annotations of hubs, agents, Kubernetes and Helm. Others hold
// text of users.
var theirAnnotations = regexp.MustCompile(
	`^(?:[a-z0-9.-]+\.)?(?:muster|muster-fleet\.github\.io|cattle\.io|kubernetes-fleet\.io|kubernetes\.io|k8s\.io|helm\.sh)/`,
)

// ofAnnotations removes the texts of users, and whole objects.
func ofAnnotations(annotations map[string]any) map[string]any {
	for key, value := range annotations {
		switch text, isText := value.(string); {
		case !isText, !theirAnnotations.MatchString(key), key == corev1.LastAppliedConfigAnnotation,
			strings.HasPrefix(key, "objectset.rio.cattle.io/"):
			annotations[key] = Mark
		default:
			annotations[key] = Scrub(text)
		}
	}
	return annotations
}

// namesOnly keeps the keys and removes the values.
func namesOnly(value any) any {
	below, ok := value.(map[string]any)
	if !ok {
		return Mark
	}
	for key := range below {
		below[key] = Mark
	}
	return below
}
