// Package selection finds what a placement selects on the hub and follows its changes, by watches of just that.
//
// It reads and writes nothing else. Its invariants: what the fleet needs for itself is never selected; what cannot be read is never
// taken for absent.
package selection

import (
	"cmp"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// Selector resolves selectors.
type Selector struct {
	Watches *Watches
	Kinds   *Kinds
	Mapper  meta.RESTMapper
	// Workspace says whether a namespace holds records of the fleet.
	Workspace func(namespace string) bool
}

// Selection is what selectors select.
type Selection struct {
	// Objects as their authors wrote them, in the order in which they are to be applied.
	Objects []*unstructured.Unstructured
	// Waiting: the hub has not answered yet; its answer wakes the placement.
	Waiting bool
	// Problem is what is wrong with a selector; then Objects means nothing.
	Problem string
	// Unread are the resources, in namespaces that are selected whole, that the hub may not read.
	Unread []string
}

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// run is one resolution.
type run struct {
	*Selector
	queries map[Query]bool
	found   map[schema.GroupVersionKind]map[types.NamespacedName]*unstructured.Unstructured
	unread  map[string]bool
	waiting bool
	// scoped: there are selectors for what is within selected Namespaces.
	scoped bool
}

// Select resolves the selectors of a placement: of a ClusterResourcePlacement if namespace is empty, else of a ResourcePlacement there.
func (s *Selector) Select(user types.NamespacedName, selectors []placement.ResourceSelector) (Selection, error) {
	r := &run{Selector: s, queries: map[Query]bool{}, unread: map[string]bool{}, found: map[schema.GroupVersionKind]map[types.NamespacedName]*unstructured.Unstructured{}}
	problem, err := r.resolve(user, selectors)
	if err != nil {
		return Selection{}, err
	}
	s.Watches.Use(user, r.queries)
	selection := Selection{Waiting: r.waiting, Problem: problem}
	if problem != "" || r.waiting {
		return selection, nil
	}
	for _, objects := range r.found {
		for _, o := range objects {
			selection.Objects = append(selection.Objects, strip(o))
		}
	}
	slices.SortFunc(selection.Objects, inOrder)
	for resource := range r.unread {
		selection.Unread = append(selection.Unread, resource)
	}
	slices.Sort(selection.Unread)
	return selection, nil
}

// Drop ends the watches of a placement that is gone.
func (s *Selector) Drop(user types.NamespacedName) { s.Watches.Use(user, nil) }

// resolve goes through the selectors, Namespaces first, because others may select within them.
func (r *run) resolve(user types.NamespacedName, selectors []placement.ResourceSelector) (problem string, err error) {
	within := []string{user.Namespace}
	if user.Namespace == "" {
		if within, problem, err = r.namespaces(selectors); problem != "" || err != nil {
			return problem, err
		}
	} else if why := reservedNamespace(user.Namespace, nil, r.Workspace(user.Namespace)); why != "" {
		return fmt.Sprintf("nothing of namespace %s can be placed: %s", user.Namespace, why), nil
	}
	for i, s := range selectors {
		if user.Namespace == "" && isNamespace(s) {
			continue
		}
		if problem, err := r.others(i, s, user, within); problem != "" || err != nil {
			return problem, err
		}
	}
	return "", nil
}

func isNamespace(s placement.ResourceSelector) bool { return s.Group == "" && s.Kind == "Namespace" }

// namespaces selects Namespaces and what comes with them, and returns those within which other selectors select.
func (r *run) namespaces(selectors []placement.ResourceSelector) (within []string, problem string, err error) {
	for i, s := range selectors {
		if !isNamespace(s) {
			continue
		}
		r.scoped = r.scoped || s.SelectionScope == placement.NamespaceWithResourceSelectors
		query := Query{Resource: namespaces, Name: s.Name}
		if query.Labels, problem = labelsOf(i, s); problem != "" {
			return nil, problem, nil
		}
		objects, problem := r.ask(query, fmt.Sprintf("spec.resourceSelectors[%d]", i))
		if problem != "" {
			return nil, problem, nil
		}
		for _, o := range objects {
			if why := reservedNamespace(o.GetName(), o.GetLabels(), r.Workspace(o.GetName())); why != "" {
				if s.Name != "" {
					return nil, fmt.Sprintf("spec.resourceSelectors[%d]: Namespace %s cannot be placed: %s", i, s.Name, why), nil
				}
				continue // selected with others: left out, like what is derived
			}
			if o.GetDeletionTimestamp() != nil {
				continue
			}
			r.add(o)
			switch s.SelectionScope {
			case placement.NamespaceOnly:
			case placement.NamespaceWithResourceSelectors:
				within = append(within, o.GetName())
			default:
				if err := r.everythingIn(o.GetName()); err != nil {
					return nil, "", err
				}
			}
		}
	}
	return within, "", nil
}

// everythingIn selects what is in a namespace. What the hub may not read is said, and the rest is placed.
func (r *run) everythingIn(namespace string) error {
	kinds, err := r.Kinds.Namespaced()
	if err != nil {
		return err
	}
	for _, resource := range kinds {
		query := Query{Resource: resource, Namespace: namespace}
		r.queries[query] = true
		objects, known, failure := r.Watches.Answer(query)
		switch {
		case apierrors.IsForbidden(failure), apierrors.IsNotFound(failure), apierrors.IsMethodNotSupported(failure):
			r.unread[resource.GroupResource().String()] = true
			continue
		case !known && failure != nil:
			return fmt.Errorf("reading %s in namespace %s: %w", resource.GroupResource(), namespace, failure)
		case !known:
			r.waiting = true
		}
		for _, o := range objects {
			if !derived(o) {
				r.add(o)
			}
		}
	}
	return nil
}

// others selects objects of any other kind.
func (r *run) others(i int, s placement.ResourceSelector, user types.NamespacedName, within []string) (problem string, err error) {
	at := fmt.Sprintf("spec.resourceSelectors[%d]", i)
	gvk := schema.GroupVersionKind{Group: s.Group, Version: s.Version, Kind: s.Kind}
	if why := neverPlaced(gvk); why != "" {
		return fmt.Sprintf("%s: %s cannot be placed: %s", at, s.Kind, why), nil
	}
	mapping, err := r.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		return fmt.Sprintf("%s: the hub cluster does not serve %s in version %s", at, gvk.GroupKind(), gvk.Version), nil
	} else if err != nil {
		return "", fmt.Errorf("looking up %s: %w", gvk, err)
	}
	namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace
	switch {
	case namespaced && user.Namespace == "" && !r.scoped:
		return fmt.Sprintf("%s: a %s is in a namespace: select its Namespace, with selectionScope NamespaceWithResourceSelectors if not everything in it, or use a ResourcePlacement", at, s.Kind), nil
	case !namespaced && user.Namespace != "":
		return fmt.Sprintf("%s: a %s is not in a namespace, and a ResourcePlacement places only what is in its own: use a ClusterResourcePlacement", at, s.Kind), nil
	case !namespaced:
		within = []string{""}
	}
	selector, problem := labelsOf(i, s)
	if problem != "" {
		return problem, nil
	}
	for _, namespace := range within {
		objects, problem := r.ask(Query{Resource: mapping.Resource, Namespace: namespace, Name: s.Name, Labels: selector}, at)
		if problem != "" {
			return problem, nil
		}
		for _, o := range objects {
			if !derived(o) {
				r.add(o)
			}
		}
	}
	return "", nil
}

// ask returns what a query selects. A failure that a person has to deal with is a problem; any other is waited for.
func (r *run) ask(query Query, at string) (objects []*unstructured.Unstructured, problem string) {
	r.queries[query] = true
	objects, known, failure := r.Watches.Answer(query)
	where := ""
	if query.Namespace != "" {
		where = " in namespace " + query.Namespace
	}
	switch {
	case apierrors.IsForbidden(failure):
		return nil, fmt.Sprintf("%s: the hub may not read %s%s: allow it in placement.resources of the chart fleet", at, query.Resource.GroupResource(), where)
	case !known && failure != nil:
		return nil, fmt.Sprintf("%s: reading %s%s: %v", at, query.Resource.GroupResource(), where, failure)
	case !known:
		r.waiting = true
	}
	return objects, ""
}

func (r *run) add(o *unstructured.Unstructured) {
	kind := o.GroupVersionKind()
	if r.found[kind] == nil {
		r.found[kind] = map[types.NamespacedName]*unstructured.Unstructured{}
	}
	r.found[kind][keyOf(o)] = o
}

func labelsOf(i int, s placement.ResourceSelector) (selector, problem string) {
	if s.LabelSelector == nil {
		return "", ""
	}
	compiled, err := metav1.LabelSelectorAsSelector(s.LabelSelector)
	if err != nil {
		return "", fmt.Sprintf("spec.resourceSelectors[%d].labelSelector: %v", i, err)
	}
	return compiled.String(), ""
}

// first are the kinds that others need to be there, in the order in which they are applied; all others follow.
var first = []schema.GroupKind{
	{Kind: "Namespace"}, {Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}, {Group: "scheduling.k8s.io", Kind: "PriorityClass"},
	{Group: "storage.k8s.io", Kind: "StorageClass"}, {Kind: "ResourceQuota"}, {Kind: "LimitRange"}, {Kind: "ServiceAccount"}, {Kind: "Secret"}, {Kind: "ConfigMap"},
	{Kind: "PersistentVolume"}, {Kind: "PersistentVolumeClaim"}, {Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}, {Group: "rbac.authorization.k8s.io", Kind: "Role"},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}, {Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}, {Kind: "Service"},
}

func rank(o *unstructured.Unstructured) int {
	if i := slices.Index(first, o.GroupVersionKind().GroupKind()); i >= 0 {
		return i
	}
	return len(first)
}

func inOrder(a, b *unstructured.Unstructured) int {
	return cmp.Or(rank(a)-rank(b), cmp.Compare(a.GetAPIVersion(), b.GetAPIVersion()), cmp.Compare(a.GetKind(), b.GetKind()),
		cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}
