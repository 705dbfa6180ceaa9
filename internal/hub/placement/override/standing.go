package override

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/placement/authorization"
)

// Standing reports whether an override counts. The zero Standing counts.
type Standing struct {
	// Ignored: the override changes nothing.
	Ignored bool
	// Reason and Message explain why nothing is written to the members of the override. They are
	// empty if the override can be applied.
	Reason, Message string
}

// Review returns the effective overrides, with their standing.
func (s Set) Review(review func(Override) (Standing, error)) (Set, error) {
	counted := make(Set, 0, len(s))
	for _, o := range s {
		standing, err := review(o.Override)
		if err != nil {
			return nil, err
		}
		if o.standing = standing; !standing.Ignored {
			counted = append(counted, o)
		}
	}
	return counted, nil
}

// Rights returns the rights needed for the override: with them the author could make the same
// changes to these objects on the hub.
func (o Override) Rights(objects []*unstructured.Unstructured,
	resourceOf func(schema.GroupVersionKind) (schema.GroupVersionResource, error)) ([]authorization.Right, error) {
	var rights []authorization.Right
	seen := map[authorization.Right]bool{}
	patches, deletes, anyRole := o.changes()
	for _, object := range objects {
		id := identify(object)
		if !o.Selects(id) {
			continue
		}
		resource, err := resourceOf(object.GroupVersionKind())
		if err != nil {
			return nil, err
		}
		var takes []authorization.Right
		if patches {
			takes = append(takes, authorization.ToPatch(resource, object, anyRole)...)
		}
		if deletes {
			takes = append(takes, authorization.ToDelete(resource, object)...)
		}
		for _, right := range takes {
			if !o.names(id) {
				right.Name = "" // as for a whole Namespace: one right for each kind in it
			}
			if !seen[right] {
				seen[right], rights = true, append(rights, right)
			}
		}
	}
	return rights, nil
}

// changes returns the effects of the rules on the selected objects. A patch may point a binding to
// another role unless it changes subjects and metadata only. An invalid rule counts as a patch.
func (o Override) changes() (patches, deletes, anyRole bool) {
	if o.policy == nil {
		return true, false, true
	}
	for _, rule := range o.policy.OverrideRules {
		if rule.OverrideType == placement.OverrideDelete {
			deletes = true
			continue
		}
		patches = true
		for _, operation := range rule.JSONPatchOverrides {
			field, _, _ := strings.Cut(strings.TrimPrefix(operation.Path, "/"), "/")
			anyRole = anyRole || field != "subjects" && field != "metadata"
		}
	}
	return patches || !deletes, deletes, anyRole
}

// names reports whether a selector names a resource itself, and not only its Namespace.
func (o Override) names(r placement.ResourceIdentifier) bool {
	return slices.ContainsFunc(o.selectors, func(s placement.ResourceSelector) bool {
		return s.Group == r.Group && s.Kind == r.Kind && s.Name == r.Name
	})
}
