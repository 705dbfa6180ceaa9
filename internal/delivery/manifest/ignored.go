package manifest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Ignored are the fields of an object left to others by its author. The manifest sets their value
// at the creation of the object, and others own them from then on.
type Ignored struct{ paths []path }

// reservedKeys are prefixes of labels and annotations. Muster and KubeFleet find their objects by
// them.
var reservedKeys = []string{"kubernetes-fleet.io/", "muster/"}

// Ignore returns the fields at JSON pointers (RFC 6901). A number counts in the list of the
// manifest. Its entry needs a name, because the list of the member may have more entries.
func Ignore(wanted *unstructured.Unstructured, pointers []string) (Ignored, error) {
	var i Ignored
	for _, pointer := range pointers {
		p, err := follow(wanted.Object, pointer)
		if err != nil {
			return Ignored{}, fmt.Errorf("ignoreDifferences of applyStrategy names %s: %w", pointer, err)
		}
		i.paths = append(i.paths, p)
	}
	return i, nil
}

func follow(object map[string]any, pointer string) (path, error) {
	tokens, rooted := strings.CutPrefix(pointer, "/")
	if !rooted || tokens == "" {
		return nil, fmt.Errorf("it is no JSON pointer to a field, such as /spec/replicas")
	}
	var p path
	var value any = object
	for token := range strings.SplitSeq(tokens, "/") {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		switch parent := value.(type) {
		case []any:
			fields, name, err := entryAt(parent, token)
			if err != nil {
				return nil, err
			}
			p, value = append(p, entry{"name": name}), fields
		case map[string]any:
			p, value = append(p, token), parent[token]
		default:
			p, value = append(p, token), nil // the manifest leaves the field out
		}
	}
	if _, isEntry := p[len(p)-1].(entry); isEntry {
		return nil, fmt.Errorf("it is an entry of a list: name a field of the entry, or the whole list")
	}
	return p, p.check()
}

// entryAt returns the entry of a list with a number, and its name.
func entryAt(list []any, number string) (fields map[string]any, name string, err error) {
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n >= len(list) {
		return nil, "", fmt.Errorf("the list of the manifest has %d entries, and none with number %s", len(list), number)
	}
	fields, _ = list[n].(map[string]any)
	name, named := fields["name"].(string)
	if !named {
		return nil, "", fmt.Errorf("entry %d of the list has no name: name the whole list", n)
	}
	return fields, name, nil
}

// check returns an error for the fields that identify an object.
func (p path) check() error {
	switch {
	case p[0] == "apiVersion" || p[0] == "kind":
	case p[0] != "metadata":
		return nil
	case len(p) == 3 && (p[1] == "labels" || p[1] == "annotations"):
		key := p[2].(string)
		if !slices.ContainsFunc(reservedKeys, func(prefix string) bool { return strings.Contains(key, prefix) }) {
			return nil
		}
	}
	return fmt.Errorf("the field identifies the object: in metadata, name one label or annotation of yours")
}

// put sets the field, with its parents.
func (p path) put(object map[string]any, value any) {
	for i, step := range p[:len(p)-1] {
		if _, exists := p[:i+1].get(object); exists {
			continue
		}
		if _, isField := step.(string); !isField {
			return
		}
		p[:i+1].set(object, map[string]any{})
	}
	p.set(object, value)
}
