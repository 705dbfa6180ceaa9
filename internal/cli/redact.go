package cli

import (
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// redacted stands for what was left out.
const redacted = "REDACTED"

// secretText is text that lets somebody in, wherever it is found: tokens of accounts, credentials in URLs and headers, private keys.
var secretText = regexp.MustCompile(`(?s)eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)?` +
	`|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)` +
	`|(?i:bearer|basic) +[A-Za-z0-9+/=._~-]{8,}` +
	`|://[^/\s@"\\]+@`)

// drifted is how a message quotes what was changed of an object on a member.
var drifted = regexp.MustCompile(`(?s) modified \{.*`)

// scrub leaves out of a text what lets somebody in, and what an object has been changed to.
func scrub(text string) string {
	text = drifted.ReplaceAllString(text, " modified "+redacted)
	return secretText.ReplaceAllStringFunc(text, func(found string) string {
		if found[0] == ':' {
			return "://" + redacted + "@"
		}
		return redacted
	})
}

// hidden are the fields in which users, or agents, hand over what may be secret: of a kind, or of all.
var hidden = map[string][][]string{
	"":                      {{"metadata", "managedFields"}, {"metadata", "annotations", corev1.LastAppliedConfigAnnotation}, {"metadata", "annotations", "objectset.rio.cattle.io/applied"}},
	"ClusterRegistration":   {{"spec", "clientRandom"}, {"status", "answer"}},
	"Content":               {{"content"}},
	"Work":                  {{"spec", "workload"}},
	"InternalMemberCluster": {{"spec", "credential", "sealed"}},
}

// maybeSecret says whether a field of an object of any kind may hold a secret: the data of Secrets,
// files and values of Bundles, what overrides set, what differs on members, and the environment, the
// arguments and the command of containers.
func maybeSecret(kind string, in map[string]any, key string) bool {
	switch key {
	case "data", "binaryData":
		return kind != "ConfigMap"
	case "stringData", "content", "overlays", "args", "command", "patch", "valueInHub", "valueInMember":
		return true
	case "values", "valuesFiles", "templateValues":
		_, selects := in["operator"]
		return !selects
	case "value":
		_, variable := in["name"]
		_, patch := in["op"]
		return variable || patch
	}
	return false
}

// redact leaves out of an object what may be secret.
func redact(o *unstructured.Unstructured) {
	for _, path := range append(hidden[""], hidden[o.GetKind()]...) {
		unstructured.RemoveNestedField(o.Object, path...)
	}
	o.Object = redactIn(o.Object, o.GetKind()).(map[string]any)
}

func redactIn(value any, kind string) any {
	switch value := value.(type) {
	case string:
		return scrub(value)
	case []any:
		for i := range value {
			value[i] = redactIn(value[i], kind)
		}
	case map[string]any:
		for key, below := range value {
			if maybeSecret(kind, value, key) {
				value[key] = namesOnly(below)
			} else {
				value[key] = redactIn(below, kind)
			}
		}
	}
	return value
}

// namesOnly keeps of values the keys, so that it can be seen what there is.
func namesOnly(value any) any {
	below, ok := value.(map[string]any)
	if !ok {
		return redacted
	}
	for key := range below {
		below[key] = redacted
	}
	return below
}
