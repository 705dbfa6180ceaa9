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

// Cause is a positive fact, read from the API server, by which an object that was selected is
// selected no more. There is none in what cannot be asked, is not allowed or is not served.
type Cause string

const (
	// NoCause says that no fact is known by which the object may go.
	NoCause Cause = ""
	// SourceDeleted says that somebody deleted the object on the hub, or its Namespace.
	SourceDeleted Cause = "SourceDeleted"
	// LabelsChanged says that the object is there, and has not the labels that the selectors ask for.
	LabelsChanged Cause = "LabelsChanged"
	// NamespaceLabelsChanged says that the object is there, and it is its Namespace that has not the
	// labels that the selectors ask for.
	NamespaceLabelsChanged Cause = "NamespaceLabelsChanged"
	// MadeAnywhere says that the object is there, and of a kind that each cluster makes
	// for its own Services.
	MadeAnywhere Cause = "MadeAnywhere"
	// SelectorsChanged says that no selector of the placement means the object any more.
	SelectorsChanged Cause = "SelectorsChanged"
)

// Causes finds out why objects that a placement selected are selected no more.
type Causes struct {
	live       client.Reader
	user       types.NamespacedName
	selectors  []placement.ResourceSelector
	namespaces map[string]lookup
}

// lookup is what the API server says of an object.
type lookup struct {
	*metav1.PartialObjectMetadata
	gone bool
	// unknown is why it does not say whether the object is there.
	unknown string
}

// NewCauses returns the Causes of a placement, which read from the API server.
func NewCauses(live client.Reader, user types.NamespacedName, selectors []placement.ResourceSelector) *Causes {
	return &Causes{live: live, user: user, selectors: selectors, namespaces: map[string]lookup{}}
}

// Of returns the cause by which an object is selected no more. Without one it says what is not
// known.
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

func (c *Causes) lookUp(ctx context.Context, of placement.ResourceIdentifier) lookup {
	kind := schema.GroupVersionKind{Group: of.Group, Version: of.Version, Kind: of.Kind}
	o := kube.Metadata(kind)
	err := c.live.Get(ctx, types.NamespacedName{Namespace: of.Namespace, Name: of.Name}, o)
	switch {
	case kube.NotServed(err):
		return lookup{unknown: fmt.Sprintf("the hub does not serve %s in version %s", kind.GroupKind(), kind.Version)}
	case apierrors.IsNotFound(err):
		return lookup{gone: true}
	case err != nil:
		return lookup{unknown: fmt.Sprintf("reading %s: %v", kube.Name(of.Kind, of.Namespace, of.Name), err)}
	}
	return lookup{PartialObjectMetadata: o, gone: o.DeletionTimestamp != nil}
}

// means says whether a selector means an object, whatever labels it asks for.
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

// selects says whether an object that a selector means has the labels that it asks for, and
// so has its Namespace.
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

// labelled says whether an object has the labels that a selector asks for, and yes if the
// selector cannot be read.
func labelled(s placement.ResourceSelector, o lookup) bool {
	if s.LabelSelector == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(s.LabelSelector)
	return err != nil || selector.Matches(labels.Set(o.Labels))
}

// bringsAll says whether a selector of Namespaces brings what is in them.
func bringsAll(s placement.ResourceSelector) bool {
	return s.SelectionScope != placement.NamespaceOnly && s.SelectionScope != placement.NamespaceWithResourceSelectors
}

// selectsWithin says whether other selectors select within the Namespaces of a selector.
func selectsWithin(s placement.ResourceSelector) bool {
	return selectsNamespaces(s) && s.SelectionScope == placement.NamespaceWithResourceSelectors
}
