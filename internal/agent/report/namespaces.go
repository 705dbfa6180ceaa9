package report

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/kubeclient"
)

// maxNamespaces is the maximum number of namespaces in a report, as with KubeFleet's agents.
const maxNamespaces = 200

// namespaces is the store of the member's namespaces: the name of each, and its owning Work.
type namespaces struct {
	kubeclient.Store[*corev1.Namespace]
	// answered is set once the namespaces have been listed, or cannot be.
	answered bool
	// sorted are all names, owners the Work of each.
	sorted []string
	owners map[string]string
}

func newNamespaces(changed chan struct{}) *namespaces {
	n := &namespaces{owners: map[string]string{}}
	n.Store = kubeclient.Store[*corev1.Namespace]{
		Changed: changed, Put: n.put, Drop: n.drop, Strip: stripNamespace, InPages: true, Reset: func() {
			n.answered, n.sorted = true, nil
			clear(n.owners)
		},
	}
	return n
}

// collection is the part of a report about namespaces.
type collection struct {
	// answered is set once the list has succeeded or failed, listed once it has succeeded.
	answered, listed bool
	// owners is the Work of each namespace, empty for a namespace without one. It has at most
	// maxNamespaces entries, the first by name.
	owners map[string]string
	// more is set if there are others.
	more bool
}

func (c collection) equal(other collection) bool {
	return c.listed == other.listed && c.more == other.more && maps.Equal(c.owners, other.owners)
}

func (n *namespaces) collection() collection {
	n.Lock()
	defer n.Unlock()
	first := n.sorted[:min(maxNamespaces, len(n.sorted))]
	c := collection{answered: n.answered, listed: n.Listed, more: len(first) < len(n.sorted), owners: make(map[string]string, len(first))}
	for _, name := range first {
		c.owners[name] = n.owners[name]
	}
	return c
}

// watched handles the result of an attempt to watch. The report does not wait for unreadable
// namespaces.
func (n *namespaces) watched(err error) {
	if err != nil {
		_ = n.Change(func() { n.answered = true }) // never fails
	}
}

// put stores a namespace. A namespace in deletion accepts no new objects, and counts as deleted.
func (n *namespaces) put(object *corev1.Namespace) bool {
	if object.DeletionTimestamp != nil {
		n.drop(object)
		return true
	}
	if at, found := slices.BinarySearch(n.sorted, object.Name); !found {
		n.sorted = slices.Insert(n.sorted, at, object.Name)
	}
	n.owners[object.Name] = workOf(object)
	return true
}

func (n *namespaces) drop(object *corev1.Namespace) {
	if at, found := slices.BinarySearch(n.sorted, object.Name); found {
		n.sorted = slices.Delete(n.sorted, at, at+1)
	}
	delete(n.owners, object.Name)
}

// workOf names the owning Work of a namespace: an AppliedWork has the name of its Work.
func workOf(o metav1.Object) string {
	for _, owner := range o.GetOwnerReferences() {
		if kube.IsOwner(owner, placement.GroupVersion.WithKind("AppliedWork").GroupKind()) {
			return owner.Name
		}
	}
	return ""
}

// stripNamespace keeps the needed fields of a namespace.
func stripNamespace(o *corev1.Namespace) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, DeletionTimestamp: o.DeletionTimestamp, OwnerReferences: o.OwnerReferences,
	}}
}
