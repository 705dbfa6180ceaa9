// Package selection finds the objects selected by a placement on the hub and follows their
// changes, with watches limited to them.
//
// It writes nothing. Its invariants: the fleet's own objects are never selected; an unreadable
// object never counts as absent.
package selection

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/placement/authorization"
	"github.com/muster-fleet/muster/internal/kube"
)

// Selector resolves the resource selectors of placements.
type Selector struct {
	Watches *Watches
	Kinds   *Kinds
	Mapper  meta.RESTMapper
	// IsWorkspace reports whether a namespace holds membership objects of the fleet.
	IsWorkspace func(namespace string) bool
}

// Selection is the result of a placement's selectors.
type Selection struct {
	// Objects in their authors' form, in the order of application.
	Objects []*unstructured.Unstructured
	// Waiting: a watch has not listed its objects yet; the placement is requeued after the list.
	Waiting bool
	// Problem is an error in a selector; Objects is then undefined.
	Problem string
	// Unread holds the unreadable resources in namespaces selected as a whole.
	Unread []string
	// Missing holds the objects named by selectors but missing on the hub, in the order of the
	// selectors.
	Missing []string
	// Withheld holds the queries left out because the author of the placement may not read their
	// objects.
	Withheld []Query
}

// MayRead reports whether the author of a placement may read the objects of a query. It returns
// an error if the rights are unknown.
type MayRead func(Query) (bool, error)

// maxFailure limits the length of a read error in messages.
const maxFailure = 200

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// invalid is an error in a selector, for its author.
type invalid string

func (i invalid) Error() string { return string(i) }

func invalidf(format string, args ...any) error { return invalid(fmt.Sprintf(format, args...)) }

// ResourceOf returns the resource of a kind. For a kind unknown to the hub it returns the
// placeholder for the whole group.
func (s *Selector) ResourceOf(kind schema.GroupVersionKind) (schema.GroupVersionResource, error) {
	mapping, err := s.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return authorization.UnknownResource(kind), nil
	} else if err != nil {
		return schema.GroupVersionResource{}, fmt.Errorf("looking up %s: %w", kind, err)
	}
	return mapping.Resource, nil
}

// resolver resolves the selectors of one placement once.
type resolver struct {
	*Selector
	Selection
	mayRead MayRead
	queries map[Query]bool
	// selected maps objects to the index of their selector. duplicates names the objects with
	// several selectors.
	selected   map[objectID]selectedObject
	duplicates []string
	unread     map[string]bool
	// scoped: a Namespace is selected only for other selectors to select within it.
	scoped bool
}

type selectedObject struct {
	*unstructured.Unstructured
	selector int
}

// Select resolves the selectors of a placement. A user without a namespace is a
// ClusterResourcePlacement, any other a ResourcePlacement in its namespace. Unreadable objects
// are left out; a nil mayRead allows everything readable by the hub.
func (s *Selector) Select(user types.NamespacedName, mayRead MayRead, selectors []placement.ResourceSelector) (Selection, error) {
	r := &resolver{
		Selector: s, mayRead: mayRead, queries: map[Query]bool{}, unread: map[string]bool{}, selected: map[objectID]selectedObject{},
	}
	err := r.resolve(user, selectors)
	var problem invalid
	if err != nil && !errors.As(err, &problem) {
		return Selection{}, err
	}
	s.Watches.Use(user, r.queries)
	if r.Problem = string(problem); r.Problem == "" && !r.Waiting && len(r.duplicates) > 0 {
		r.Problem = slices.Min(r.duplicates) // the same one each time
	}
	if r.Problem != "" || r.Waiting {
		return r.Selection, nil
	}
	for _, o := range r.selected {
		r.Objects = append(r.Objects, strip(o.Unstructured))
	}
	slices.SortFunc(r.Objects, inOrder)
	r.Unread = slices.Sorted(maps.Keys(r.unread))
	return r.Selection, nil
}

// Drop ends the watches of a deleted placement.
func (s *Selector) Drop(user types.NamespacedName) { s.Watches.Use(user, nil) }

// resolve evaluates the selectors, Namespaces first, because others may select within them.
func (r *resolver) resolve(user types.NamespacedName, selectors []placement.ResourceSelector) (err error) {
	within := []string{user.Namespace}
	if user.Namespace == "" {
		if within, err = r.selectNamespaces(selectors); err != nil {
			return err
		}
	} else if why := reservedNamespace(user.Namespace, nil, r.IsWorkspace(user.Namespace)); why != "" {
		return invalidf("nothing of namespace %s can be placed: %s", user.Namespace, why)
	}
	for i, s := range selectors {
		if user.Namespace == "" && selectsNamespaces(s) {
			continue
		}
		if err := r.selectObjects(i, s, user, within); err != nil {
			return err
		}
	}
	return nil
}

func selectsNamespaces(s placement.ResourceSelector) bool {
	return s.Group == "" && s.Kind == "Namespace"
}

// pathOf returns the field path of a selector.
func pathOf(i int) string { return fmt.Sprintf("spec.resourceSelectors[%d]", i) }

// selectNamespaces selects Namespaces and their contents. It returns the Namespaces used as a
// scope by other selectors.
func (r *resolver) selectNamespaces(selectors []placement.ResourceSelector) (within []string, err error) {
	for i, s := range selectors {
		if !selectsNamespaces(s) {
			continue
		}
		r.scoped = r.scoped || s.SelectionScope == placement.NamespaceWithResourceSelectors
		query := Query{Resource: namespaces, Name: s.Name}
		if query.Labels, err = labelsOf(i, s); err != nil {
			return nil, err
		}
		objects, readable, err := r.read(i, query)
		if err != nil {
			return nil, err
		}
		r.noteMissing(s, !readable || len(objects) > 0)
		for _, o := range objects {
			if why := reservedNamespace(o.GetName(), o.GetLabels(), r.IsWorkspace(o.GetName())); why != "" {
				if s.Name != "" {
					return nil, invalidf("%s: Namespace %s cannot be placed: %s", pathOf(i), s.Name, why)
				}
				continue // a reserved Namespace selected by labels is left out
			}
			if o.GetDeletionTimestamp() != nil {
				continue
			}
			r.add(i, o)
			if selectsWithin(s) {
				within = append(within, o.GetName())
			}
			if bringsAll(s) {
				if err := r.selectAllIn(i, o.GetName()); err != nil {
					return nil, err
				}
			}
		}
	}
	return within, nil
}

// selectAllIn selects everything in a namespace. Unreadable resources are noted as unread, and
// the rest is placed. Already placed objects of an unread resource stay, because nothing gives a
// Cause for their removal.
func (r *resolver) selectAllIn(i int, namespace string) error {
	kinds, silent, err := r.Kinds.Namespaced()
	if err != nil {
		return err
	}
	for _, group := range silent {
		r.unread["everything in "+group+", which does not answer"] = true
	}
	for _, resource := range kinds {
		query := Query{Resource: resource, Namespace: namespace}
		r.queries[query] = true
		objects, synced, failure := r.Watches.Objects(query)
		switch {
		case apierrors.IsForbidden(failure):
			r.unread[resource.GroupResource().String()] = true
			continue
		case apierrors.IsNotFound(failure), apierrors.IsMethodNotSupported(failure), !synced && failure != nil:
			r.unread[fmt.Sprintf("%s (%s)", resource.GroupResource(), kube.Clip(failure.Error(), maxFailure))] = true
			continue
		case !synced:
			r.Waiting = true
		}
		objects = slices.DeleteFunc(objects, r.generated)
		if len(objects) == 0 {
			continue // without objects no review of rights is needed
		}
		if readable, err := r.readable(query); err != nil {
			return err
		} else if !readable {
			continue
		}
		for _, o := range objects {
			r.add(i, o)
		}
	}
	return nil
}

// selectObjects selects objects of any kind but Namespaces.
func (r *resolver) selectObjects(i int, s placement.ResourceSelector, user types.NamespacedName, within []string) error {
	gvk := schema.GroupVersionKind{Group: s.Group, Version: s.Version, Kind: s.Kind}
	if why := neverPlaced(gvk); why != "" {
		return invalidf("%s: %s cannot be placed: %s", pathOf(i), s.Kind, why)
	}
	mapping, err := r.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		return invalidf("%s: the hub cluster does not serve %s in version %s", pathOf(i), gvk.GroupKind(), gvk.Version)
	} else if err != nil {
		return fmt.Errorf("looking up %s: %w", gvk, err)
	}
	namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace
	switch {
	case namespaced && user.Namespace == "" && !r.scoped:
		return invalidf("%s: a %s is in a namespace: select its Namespace, with selectionScope NamespaceWithResourceSelectors if not everything "+
			"in it, or use a ResourcePlacement", pathOf(i), s.Kind)
	case !namespaced && user.Namespace != "":
		return invalidf("%s: a %s is not in a namespace, and a ResourcePlacement places only objects of its own: use a ClusterResourcePlacement",
			pathOf(i), s.Kind)
	case !namespaced:
		within = []string{""}
	}
	selector, err := labelsOf(i, s)
	if err != nil {
		return err
	}
	found := false
	for _, namespace := range within {
		objects, readable, err := r.read(i, Query{Resource: mapping.Resource, Namespace: namespace, Name: s.Name, Labels: selector})
		if err != nil {
			return err
		}
		found = found || !readable || len(objects) > 0 // without the read right an author cannot learn whether the object exists
		if err := r.addPlaced(i, objects); err != nil {
			return err
		}
	}
	r.noteMissing(s, found)
	return nil
}

// noteMissing notes an object named by a selector but missing on the hub.
func (r *resolver) noteMissing(s placement.ResourceSelector, found bool) {
	if s.Name != "" && !found {
		r.Missing = append(r.Missing, s.Kind+" "+s.Name)
	}
}

// readable reports whether the author may read the objects of a query, and notes the query if
// not.
func (r *resolver) readable(query Query) (bool, error) {
	if r.mayRead == nil {
		return true, nil
	}
	readable, err := r.mayRead(query)
	if err == nil && !readable {
		r.Withheld = append(r.Withheld, query)
	}
	return readable, err
}

// read returns the objects of a query, unless the author may not read them: then it hides even a
// read error. A failure that a user must fix makes the selector invalid.
func (r *resolver) read(i int, query Query) (objects []*unstructured.Unstructured, readable bool, err error) {
	if readable, err = r.readable(query); err != nil || !readable {
		return nil, readable, err
	}
	r.queries[query] = true
	objects, synced, failure := r.Watches.Objects(query)
	resource := query.Resource.GroupResource().String()
	if query.Namespace != "" {
		resource += " in namespace " + query.Namespace
	}
	switch {
	case apierrors.IsForbidden(failure):
		return nil, true, invalidf("%s: the hub may not read %s: allow it in placement.resources of the chart fleet", pathOf(i), resource)
	case !synced && failure != nil:
		return nil, true, invalidf("%s: reading %s: %v", pathOf(i), resource, failure)
	case !synced:
		r.Waiting = true
	}
	return objects, true, nil
}

// add selects an object by a selector. Like KubeFleet, it refuses an object selected twice: the
// selectors may mean two versions of its kind.
func (r *resolver) add(i int, o *unstructured.Unstructured) {
	id := idOf(o)
	if other, found := r.selected[id]; found && other.selector != i {
		r.duplicates = append(r.duplicates, fmt.Sprintf("spec.resourceSelectors[%d] and [%d] both select %s %s: each object may be selected once",
			min(i, other.selector), max(i, other.selector), o.GetKind(), strings.TrimPrefix(id.NamespacedName.String(), "/")))
	}
	r.selected[id] = selectedObject{o, i}
}

func labelsOf(i int, s placement.ResourceSelector) (string, error) {
	if s.LabelSelector == nil {
		return "", nil
	}
	selector, err := metav1.LabelSelectorAsSelector(s.LabelSelector)
	if err != nil {
		return "", invalidf("%s.labelSelector: %v", pathOf(i), err)
	}
	return selector.String(), nil
}
