package work

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ignored is what says nothing about whether an object is as its manifest says.
var ignored = [][]string{
	{"status"}, {"metadata", "managedFields"}, {"metadata", "resourceVersion"}, {"metadata", "generation"}, {"metadata", "ownerReferences"},
	{"metadata", "annotations", annotationHash}, {"metadata", "annotations", annotationLastApplied}, {"metadata", "labels", labelWork},
}

// differences names in what an object is not as it would be were it applied. The values of a Secret are not shown.
func differences(is, wanted *unstructured.Unstructured) []string {
	is, wanted = is.DeepCopy(), wanted.DeepCopy()
	for _, object := range []*unstructured.Unstructured{is, wanted} {
		for _, path := range ignored {
			unstructured.RemoveNestedField(object.Object, path...)
		}
		for _, field := range []string{"annotations", "labels"} {
			if values, _, err := unstructured.NestedMap(object.Object, "metadata", field); err == nil && len(values) == 0 {
				unstructured.RemoveNestedField(object.Object, "metadata", field)
			}
		}
	}
	secret := is.GetKind() == secretKind
	var found []string
	compare("", is.Object, wanted.Object, func(path string, is, wanted any) {
		switch {
		case secret:
			found = append(found, path+" differs")
		case is == nil:
			found = append(found, fmt.Sprintf("%s is missing", path))
		case wanted == nil:
			found = append(found, fmt.Sprintf("%s is there", path))
		default:
			found = append(found, fmt.Sprintf("%s is %s and not %s", path, short(is), short(wanted)))
		}
	})
	return found
}

// compare tells every path at which two values differ.
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
				compare(path+"."+name, is[name], wanted[name], tell)
			}
			return
		}
	case []any:
		if wanted, ok := wanted.([]any); ok && len(is) == len(wanted) {
			for i := range is {
				compare(fmt.Sprintf("%s[%d]", path, i), is[i], wanted[i], tell)
			}
			return
		}
	}
	tell(path, is, wanted)
}

func short(value any) string {
	text, err := json.Marshal(value)
	if err != nil || len(text) > 60 {
		return "something else"
	}
	return string(text)
}
