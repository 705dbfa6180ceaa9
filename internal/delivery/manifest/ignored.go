package manifest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Ignored are fields of an object that its author leaves to others. They have the value of the
// manifest when the object is created, and are theirs from then on.
type Ignored struct{ paths []path }

// reservedKeys are prefixes of the labels and annotations by which Muster and KubeFleet find their
// objects.
var reservedKeys = []string{"kubernetes-fleet.io/", "muster/"}

// Ignore returns the fields at JSON pointers (RFC 6901). A pointer into a list counts in the list of
// the manifest, and the entry needs a name, because the member may have others before it.
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
	var at any = object
	for token := range strings.SplitSeq(tokens, "/") {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		switch in := at.(type) {
		case []any:
			n, err := strconv.Atoi(token)
			if err != nil || n < 0 || n >= len(in) {
				return nil, fmt.Errorf("the list of the manifest has %d entries, and none with number %s", len(in), token)
			}
			fields, _ := in[n].(map[string]any)
			name, named := fields["name"].(string)
			if !named {
				return nil, fmt.Errorf("entry %d of the list has no name: name the whole list", n)
			}
			p, at = append(p, entry{"name": name}), fields
		case map[string]any:
			p, at = append(p, token), in[token]
		default:
			p, at = append(p, token), nil // the manifest leaves the field out
		}
	}
	if _, isEntry := p[len(p)-1].(entry); isEntry {
		return nil, fmt.Errorf("it is an entry of a list: name a field of the entry, or the whole list")
	}
	return p, p.check()
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
func (p path) put(in map[string]any, value any) {
	for i, step := range p[:len(p)-1] {
		if _, there := p[:i+1].get(in); there {
			continue
		}
		name, isField := step.(string)
		if !isField {
			return
		}
		p[:i+1].set(in, map[string]any{})
		if parent, _ := p[:i+1].parent(in); parent[name] == nil {
			return
		}
	}
	p.set(in, value)
}
