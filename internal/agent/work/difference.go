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
)

const (
	// maxDifferences is how many differences of an object a status names, maxValue how long a value in it may be.
	maxDifferences, maxValue = 20, 256
	// hidden stands for a value in a Secret.
	hidden = "(not shown: it is in a Secret)"
	// wholeObject is the path of an object that is not there.
	wholeObject = "/"
)

// ignored is what says nothing about whether an object is as its manifest says.
var ignored = [][]string{
	{"status"}, {"metadata", "managedFields"}, {"metadata", "resourceVersion"}, {"metadata", "generation"}, {"metadata", "ownerReferences"},
	{"metadata", "annotations", annotationHash}, {"metadata", "annotations", annotationLastApplied}, {"metadata", "labels", labelWork},
	// What Kubernetes itself puts there.
	{"metadata", "finalizers"}, {"metadata", "annotations", "deployment.kubernetes.io/revision"},
}

// differences are those between an object and what it would be, were it applied. The values of a Secret are not shown.
func differences(is, wanted *unstructured.Unstructured) (found []placement.PatchDetail) {
	show := readable
	if is.GetKind() == secretKind {
		show = func(value any) string {
			if value == nil {
				return ""
			}
			return hidden
		}
	}
	compare("", plain(is), plain(wanted), func(path string, is, wanted any) {
		found = append(found, placement.PatchDetail{Path: path, ValueInHub: show(wanted), ValueInMember: show(is)})
	})
	return found
}

// plain is an object without what is ignored.
func plain(object *unstructured.Unstructured) map[string]any {
	object = object.DeepCopy()
	for _, path := range ignored {
		unstructured.RemoveNestedField(object.Object, path...)
	}
	for _, field := range []string{"annotations", "labels"} {
		if values, _, err := unstructured.NestedMap(object.Object, "metadata", field); err == nil && len(values) == 0 {
			unstructured.RemoveNestedField(object.Object, "metadata", field)
		}
	}
	return object.Object
}

// compare tells every path at which two values differ, as a JSON pointer.
func compare(path string, is, wanted any, tell func(path string, is, wanted any)) {
	if reflect.DeepEqual(is, wanted) {
		return
	}
	switch is := is.(type) {
	case map[string]any:
		if wanted, ok := wanted.(map[string]any); ok {
			names := maps.Clone(is)
			maps.Copy(names, wanted)
			for _, name := range slices.Sorted(maps.Keys(names)) {
				compare(path+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name), is[name], wanted[name], tell)
			}
			return
		}
	case []any:
		if wanted, ok := wanted.([]any); ok && len(is) == len(wanted) {
			for i := range is {
				compare(fmt.Sprintf("%s/%d", path, i), is[i], wanted[i], tell)
			}
			return
		}
	}
	tell(path, is, wanted)
}

// readable is a value for people.
func readable(value any) string {
	text, ok := value.(string)
	if !ok && value != nil {
		encoded, err := json.Marshal(value)
		if err != nil {
			return "(something that cannot be shown)"
		}
		text = string(encoded)
	}
	if len(text) > maxValue {
		text = strings.ToValidUTF8(text[:maxValue], "") + "..."
	}
	return text
}

// listed says in words what differs.
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
	return someOf(texts)
}
