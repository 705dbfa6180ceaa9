package work

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	delivered "github.com/muster-fleet/muster/internal/delivery/manifest"
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// maxDifferences is the maximum number of differences of an object in a status, maxValue the
	// maximum length of a value.
	maxDifferences, maxValue = 20, 256
	// hidden replaces a value in a Secret.
	hidden = "(not shown: it is in a Secret)"
	// wholeObject is the path of a missing object.
	wholeObject = "/"
)

// ignored are fields left out of a comparison with the manifest, besides the fields set by the API
// server.
var ignored = [][]string{
	{"metadata", "ownerReferences"}, {"metadata", "labels", labelWork},
	{"metadata", "annotations", annotationHash}, {"metadata", "annotations", annotationLastApplied},
	{"metadata", "annotations", annotationTakenOver},
	// A generateName has no effect on an existing name.
	{"metadata", "generateName"},
}

// differences returns the differences between an object and the result of applying its manifest. It
// hides the values of a Secret.
func differences(found, wanted *unstructured.Unstructured) (details []placement.PatchDetail) {
	format := readable
	if found.GetKind() == secretKind {
		format = func(value any) string {
			if value == nil {
				return ""
			}
			return hidden
		}
	}
	compare("", withoutIgnored(found), withoutIgnored(wanted), func(path string, is, wanted any) {
		details = append(details, placement.PatchDetail{Path: path, ValueInHub: format(wanted), ValueInMember: format(is)})
	})
	return details
}

// withoutIgnored returns the content of an object without the ignored fields.
func withoutIgnored(object *unstructured.Unstructured) map[string]any {
	content := applied.Content(object, ignored...)
	delivered.Uncompared(object.GroupVersionKind().GroupKind(), content)
	for _, field := range []string{"annotations", "labels"} {
		if values, _, err := unstructured.NestedMap(content, "metadata", field); err == nil && len(values) == 0 {
			unstructured.RemoveNestedField(content, "metadata", field)
		}
	}
	return content
}

// compare calls differs for each differing path of two values, as a JSON pointer.
func compare(path string, found, wanted any, differs func(path string, found, wanted any)) {
	if reflect.DeepEqual(found, wanted) {
		return
	}
	switch found := found.(type) {
	case map[string]any:
		if wanted, ok := wanted.(map[string]any); ok {
			names := maps.Clone(found)
			maps.Copy(names, wanted)
			for _, name := range slices.Sorted(maps.Keys(names)) {
				compare(path+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name), found[name], wanted[name], differs)
			}
			return
		}
	case []any:
		if wanted, ok := wanted.([]any); ok && len(found) == len(wanted) {
			for i := range found {
				compare(fmt.Sprintf("%s/%d", path, i), found[i], wanted[i], differs)
			}
			return
		}
	}
	differs(path, found, wanted)
}

// readable formats a value for people.
func readable(value any) string {
	text, ok := value.(string)
	if !ok && value != nil {
		encoded, err := json.Marshal(value)
		if err != nil {
			return "(something that cannot be shown)"
		}
		text = string(encoded)
	}
	return kube.Clip(text, maxValue)
}

// listed describes differences in words.
func listed(found []placement.PatchDetail) string {
	const most = 60
	var texts []string
	for _, one := range found {
		switch {
		case one.Path == wholeObject:
			texts = append(texts, "it is missing")
		case one.ValueInHub == hidden || one.ValueInMember == hidden:
			texts = append(texts, one.Path+" differs")
		case one.ValueInMember == "":
			texts = append(texts, one.Path+" is missing")
		case one.ValueInHub == "":
			texts = append(texts, one.Path+" is there")
		case len(one.ValueInMember) > most || len(one.ValueInHub) > most:
			texts = append(texts, one.Path+" is something else")
		default:
			texts = append(texts, fmt.Sprintf("%s is %q and not %q", one.Path, one.ValueInMember, one.ValueInHub))
		}
	}
	return applied.Join(texts)
}
