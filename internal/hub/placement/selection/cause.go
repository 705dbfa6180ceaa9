package selection

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/kube"
)

// Cause is a positive fact, read from the API server, that explains why an object is no longer
// selected. An unanswered, forbidden or unserved request gives no Cause.
type Cause string

const (
	// NoCause reports that no fact allows the removal of the object.
	NoCause Cause = ""
	// SourceDeleted reports that the object, or its Namespace, was deleted on the hub.
	SourceDeleted Cause = "SourceDeleted"
	// LabelsChanged reports that the object exists without the labels required by the selectors.
	LabelsChanged Cause = "LabelsChanged"
	// NamespaceLabelsChanged reports that the object exists, but its Namespace lacks the labels
	// required by the selectors.
	NamespaceLabelsChanged Cause = "NamespaceLabelsChanged"
	// MadeAnywhere reports that the object exists, with a kind that each cluster creates for its
	// own Services.
	MadeAnywhere Cause = "MadeAnywhere"
	// SelectorsChanged reports that no selector of the placement covers the object any more.
	SelectorsChanged Cause = "SelectorsChanged"
)

// Causes determines why objects of a placement are no longer selected.
type Causes struct {
	live       client.Reader
	user       types.NamespacedName
	selectors  []placement.ResourceSelector
	namespaces map[string]lookup
}

// lookup is the API server's answer about an object.
type lookup struct {
	*metav1.PartialObjectMetadata
	gone bool
	// unknown is the reason why the existence of the object is unknown.
	unknown string
}

// NewCauses returns the Causes of a placement, read from the API server.
func NewCauses(live client.Reader, user types.NamespacedName, selectors []placement.ResourceSelector) *Causes {
	return &Causes{live: live, user: user, selectors: selectors, namespaces: map[string]lookup{}}
}

// Of returns the Cause for a no longer selected object. Without a Cause it returns the unknown
// fact.
func (c *Causes) Of(ctx context.Context, was placement.ResourceIdentifier) (cause Cause, unknown string) {
	if !slices.ContainsFunc(c.selectors, func(s placement.ResourceSelector) bool { return c.means(s, was) }) {
		return SelectorsChanged, ""
	}
	var namespace lookup
	if c.user.Namespace == "" && was.Namespace != "" {
		if _, known := c.namespaces[was.Namespace]; !known {
			c.namespaces[was.Namespace] = c.lookUp(ctx, placement.ResourceIdentifier{Version: "v1", Kind: "Namespace", Name: was.Namespace})
		}
		namespace = c.namespaces[was.Namespace]
	}
	object := c.lookUp(ctx, was)
	switch {
	case namespace.gone || object.gone:
		return SourceDeleted, ""
	case namespace.unknown+object.unknown != "":
		return NoCause, cmp.Or(namespace.unknown, object.unknown)
	}
	if kind := (schema.GroupKind{Group: was.Group, Kind: was.Kind}); kind == endpointsKind || kind == endpointSliceKind {
		return MadeAnywhere, "" // its Service has got a selector
	}
	for _, s := range c.selectors {
		if c.means(s, was) && c.selects(s, object, namespace) {
			return NoCause, kube.Name(was.Kind, was.Namespace, was.Name) + " is there, and cannot be placed now"
		}
	}
	if namespace.PartialObjectMetadata != nil && !slices.ContainsFunc(c.selectors, func(s placement.ResourceSelector) bool {
		return c.means(s, was) && !selectsNamespaces(s) && !labelled(s, object)
	}) {
		return NamespaceLabelsChanged, ""
	}
	return LabelsChanged, ""
}

func (c *Causes) lookUp(ctx context.Context, resource placement.ResourceIdentifier) lookup {
	kind := schema.GroupVersionKind{Group: resource.Group, Version: resource.Version, Kind: resource.Kind}
	o := kube.Metadata(kind)
	err := c.live.Get(ctx, types.NamespacedName{Namespace: resource.Namespace, Name: resource.Name}, o)
	switch {
	case kube.NotServed(err):
		return lookup{unknown: fmt.Sprintf("the hub does not serve %s in version %s", kind.GroupKind(), kind.Version)}
	case apierrors.IsNotFound(err):
		return lookup{gone: true}
	case err != nil:
		return lookup{unknown: fmt.Sprintf("reading %s: %v", kube.Name(resource.Kind, resource.Namespace, resource.Name), err)}
	}
	return lookup{PartialObjectMetadata: o, gone: o.DeletionTimestamp != nil}
}

// means reports whether a selector covers an object, regardless of labels.
func (c *Causes) means(s placement.ResourceSelector, was placement.ResourceIdentifier) bool {
	switch {
	case c.user.Namespace == "" && selectsNamespaces(s):
		if was.Group == "" && was.Kind == "Namespace" {
			return s.Name == "" || s.Name == was.Name
		}
		return was.Namespace != "" && bringsAll(s) && (s.Name == "" || s.Name == was.Namespace)
	case s.Group != was.Group || s.Kind != was.Kind || s.Name != "" && s.Name != was.Name:
		return false
	case c.user.Namespace == "" && was.Namespace != "":
		return slices.ContainsFunc(c.selectors, func(n placement.ResourceSelector) bool {
			return selectsWithin(n) && (n.Name == "" || n.Name == was.Namespace)
		})
	}
	return c.user.Namespace == was.Namespace
}

// selects reports whether an object covered by a selector has the required labels, and its
// Namespace, too.
func (c *Causes) selects(s placement.ResourceSelector, object, namespace lookup) bool {
	if namespace.PartialObjectMetadata == nil {
		return labelled(s, object)
	}
	if selectsNamespaces(s) {
		return labelled(s, namespace)
	}
	return labelled(s, object) && slices.ContainsFunc(c.selectors, func(n placement.ResourceSelector) bool {
		return selectsWithin(n) && (n.Name == "" || n.Name == namespace.Name) && labelled(n, namespace)
	})
}

// labelled reports whether an object has the labels required by a selector. It returns true for
// an invalid selector.
func labelled(s placement.ResourceSelector, o lookup) bool {
	if s.LabelSelector == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(s.LabelSelector)
	return err != nil || selector.Matches(labels.Set(o.Labels))
}

// bringsAll reports whether a selector of Namespaces includes their contents.
func bringsAll(s placement.ResourceSelector) bool {
	return s.SelectionScope != placement.NamespaceOnly && s.SelectionScope != placement.NamespaceWithResourceSelectors
}

// selectsWithin reports whether other selectors select within the Namespaces of a selector.
func selectsWithin(s placement.ResourceSelector) bool {
	return selectsNamespaces(s) && s.SelectionScope == placement.NamespaceWithResourceSelectors
}
