package manifest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// keyedList is a list with entries merged by keys. Server-side apply refuses two entries with one
// key, although the API server takes them when the object is created. Source: the markers
// patchMergeKey and listMapKey of k8s.io/api.
type keyedList struct {
	field string
	keys  []string
	// defaults are the values of missing keys.
	defaults map[string]any
}

var (
	overTCP = map[string]any{"protocol": "TCP"}
	byName  = []string{"name"}
	// podLists are lists of a Pod, containerLists lists of its containers.
	podLists = []keyedList{
		{field: "containers", keys: byName}, {field: "initContainers", keys: byName}, {field: "volumes", keys: byName},
		{field: "imagePullSecrets", keys: byName}, {field: "hostAliases", keys: []string{"ip"}},
		{field: "topologySpreadConstraints", keys: []string{"topologyKey", "whenUnsatisfiable"}},
	}
	containerLists = []keyedList{
		{field: "env", keys: byName}, {field: "ports", keys: []string{"containerPort", "protocol"}, defaults: overTCP},
		{field: "volumeMounts", keys: []string{"mountPath"}}, {field: "volumeDevices", keys: []string{"devicePath"}},
	}
	// otherLists are the lists of other kinds, by the path of their parent.
	otherLists = map[schema.GroupKind]map[string][]keyedList{
		{Kind: "Service"}:        {"spec": {{field: "ports", keys: []string{"port", "protocol"}, defaults: overTCP}}},
		{Kind: "ServiceAccount"}: {"": {{field: "imagePullSecrets", keys: byName}, {field: "secrets", keys: byName}}},
		{Group: admissionGroup, Kind: "ValidatingWebhookConfiguration"}: {"": {{field: "webhooks", keys: byName}}},
		{Group: admissionGroup, Kind: "MutatingWebhookConfiguration"}:   {"": {{field: "webhooks", keys: byName}}},
	}
)

// twin is the second entry of a key in a list.
type twin struct {
	path        string
	first, next int
}

// checkDuplicates returns the first list with two entries of one key.
func checkDuplicates(o *unstructured.Unstructured) (problem string) {
	eachList(o, func(path string, parent map[string]any, list keyedList) {
		if found := list.twins(path, parent); problem == "" && len(found) > 0 {
			problem = fmt.Sprintf("%s[%d] and [%d] have the same %s, and server-side apply takes each only once: leave one of them out",
				found[0].path, found[0].first, found[0].next, strings.Join(list.keys, " and "))
		}
	})
	return problem
}

// MergeDuplicates leaves the last of several entries of one key, at the place of the first. An
// apply on the client has the same result.
func MergeDuplicates(o *unstructured.Unstructured) {
	eachList(o, func(path string, parent map[string]any, list keyedList) {
		twins := list.twins(path, parent)
		entries, _ := parent[list.field].([]any)
		for _, t := range twins {
			entries[t.first] = entries[t.next]
		}
		for _, t := range slices.Backward(twins) {
			entries = slices.Delete(entries, t.next, t.next+1)
		}
		if len(twins) > 0 {
			parent[list.field] = entries
		}
	})
}

// eachList calls visit with each keyed list of an object of Kubernetes and its parent.
func eachList(o *unstructured.Unstructured, visit func(path string, parent map[string]any, list keyedList)) {
	kind := o.GroupVersionKind().GroupKind()
	for parent, lists := range otherLists[kind] {
		in, _ := mapAt(o.Object, parent)
		for _, list := range lists {
			visit(joined(parent, list.field), in, list)
		}
	}
	eachPod(o, func(path string, spec map[string]any) {
		for _, list := range podLists {
			visit(joined(path, list.field), spec, list)
		}
	})
	eachContainer(o, func(path string, container map[string]any) {
		for _, list := range containerLists {
			visit(joined(path, list.field), container, list)
		}
	})
}

// twins returns the entries of a list with the key of an earlier entry.
func (l keyedList) twins(path string, parent map[string]any) (found []twin) {
	entries, _ := parent[l.field].([]any)
	first := map[string]int{}
	for i, entry := range entries {
		fields, _ := entry.(map[string]any)
		key := make([]any, len(l.keys))
		for at, name := range l.keys {
			if key[at] = fields[name]; key[at] == nil {
				key[at] = l.defaults[name]
			}
		}
		text, err := json.Marshal(key)
		if err != nil || slices.Contains(key, nil) {
			continue // the API server refuses it
		}
		if earlier, twice := first[string(text)]; twice {
			found = append(found, twin{path, earlier, i})
		} else {
			first[string(text)] = i
		}
	}
	return found
}

func joined(path, field string) string { return strings.TrimPrefix(path+"."+field, ".") }

// mapAt returns the map at a path; the object itself for an empty path.
func mapAt(object map[string]any, path string) (map[string]any, bool) {
	current := object
	for _, field := range strings.Split(path, ".") {
		if field == "" {
			return current, true
		}
		next, isMap := current[field].(map[string]any)
		if !isMap {
			return nil, false
		}
		current = next
	}
	return current, true
}
