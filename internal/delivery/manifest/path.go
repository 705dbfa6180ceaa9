package manifest

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// path leads to a field: names of fields, and entries of lists by their keys.
type path []any

// entry is an entry of a list with these values.
type entry map[string]any

// get returns the value at the path.
func (p path) get(from map[string]any) (value any, found bool) {
	value = from
	for _, step := range p {
		switch step := step.(type) {
		case string:
			in, _ := value.(map[string]any)
			if value, found = in[step]; !found {
				return nil, false
			}
		case entry:
			if value, found = step.in(value); !found {
				return nil, false
			}
		}
	}
	return value, from != nil
}

// in returns the entry of a list.
func (e entry) in(list any) (map[string]any, bool) {
	entries, _ := list.([]any)
	for _, one := range entries {
		if fields, ok := one.(map[string]any); ok && e.is(fields) {
			return fields, true
		}
	}
	return nil, false
}

func (e entry) is(fields map[string]any) bool {
	for key, value := range e {
		if fields[key] != value {
			return false
		}
	}
	return true
}

// parent returns the map with the last field of the path.
func (p path) parent(in map[string]any) (map[string]any, string) {
	value, _ := p[:len(p)-1].get(in)
	fields, _ := value.(map[string]any)
	return fields, p[len(p)-1].(string) // no path ends with an entry
}

// remove removes the field.
func (p path) remove(from map[string]any) {
	fields, name := p.parent(from)
	delete(fields, name)
}

// set sets the field, if the object has its parent.
func (p path) set(in map[string]any, value any) {
	if fields, name := p.parent(in); fields != nil {
		fields[name] = value
	}
}

// ownedByOthers reports whether a manager other than this one owns the field.
func (p path) ownedByOthers(o *unstructured.Unstructured, manager string) bool {
	return p.ownedBy(o, func(is string) bool { return is != manager })
}

// ownedBy reports whether one of some managers owns the field.
func (p path) ownedBy(o *unstructured.Unstructured, matches func(manager string) bool) bool {
	for _, managed := range o.GetManagedFields() {
		if managed.FieldsV1 == nil || !matches(managed.Manager) {
			continue
		}
		var fields map[string]any
		if err := json.Unmarshal(managed.FieldsV1.GetRawBytes(), &fields); err == nil && p.within(fields) {
			return true
		}
	}
	return false
}

// within reports whether a set of fields has the path. A leaf stands for everything below it.
func (p path) within(fields map[string]any) bool {
	for i, step := range p {
		name := ""
		switch step := step.(type) {
		case string:
			name = "f:" + step
		case entry:
			text, err := json.Marshal(step)
			if err != nil {
				return false
			}
			name = "k:" + string(text)
		}
		below, there := fields[name].(map[string]any)
		if !there {
			return i > 0 && len(fields) == 0
		}
		fields = below
	}
	return true
}
