package selection

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/delivery/manifest"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	resourceEnvelope, clusterResourceEnvelope = "ResourceEnvelope", "ClusterResourceEnvelope"
	// maxKind and maxName limit the length of kinds and names.
	maxKind, maxName = 63, 253
)

// Resources are the placed objects of a selection: envelopes are replaced by their contents.
type Resources struct {
	// Objects in the order of application.
	Objects []*unstructured.Unstructured
	// Envelopes has the envelope of each wrapped resource.
	Envelopes map[placement.ResourceIdentifier]placement.EnvelopeIdentifier
	// Refused holds the invalid manifests in envelopes. The time of their conditions is not set.
	Refused []placement.FailedPlacement
	// Withheld holds the objects in envelopes omitted because of the rights of the envelopes' authors.
	Withheld []WithheldObject
}

// WithheldObject is an object left out of the placed objects.
type WithheldObject struct {
	placement.ResourceIdentifier
	// Reason is the reason of the condition. Message explains why the object is left out.
	Reason, Message string
}

// MayWrap returns the reason why the rights of an envelope's author exclude an object. The reason
// is empty if the object may stay. It returns an error if the rights are unknown. The resource
// belongs to the kind of the object.
type MayWrap func(envelope, wrapped *unstructured.Unstructured, resource schema.GroupVersionResource) (reason, message string, err error)

// objectID identifies an object in any version.
type objectID struct {
	schema.GroupKind
	types.NamespacedName
}

func idOf(o *unstructured.Unstructured) objectID {
	return objectID{o.GroupVersionKind().GroupKind(), keyOf(o)}
}

// Unwrap replaces envelopes by their contents. An envelope has the reach of its own kind: a
// ResourceEnvelope may wrap only objects in its namespace. The fleet's own objects are refused. A
// nil mayWrap allows everything else.
func (s *Selector) Unwrap(objects []*unstructured.Unstructured, mayWrap MayWrap) (Resources, error) {
	if !slices.ContainsFunc(objects, isEnvelope) {
		return Resources{Objects: objects}, nil
	}
	c := Resources{Envelopes: map[placement.ResourceIdentifier]placement.EnvelopeIdentifier{}}
	placed, unwrapped := map[objectID]bool{}, map[objectID]bool{}
	for _, o := range objects {
		if !isEnvelope(o) {
			c.Objects = append(c.Objects, o)
			placed[idOf(o)] = true
		}
	}
	for _, envelope := range objects {
		if !isEnvelope(envelope) || unwrapped[idOf(envelope)] {
			continue
		}
		unwrapped[idOf(envelope)] = true
		if err := s.unwrap(envelope, mayWrap, placed, &c); err != nil {
			return Resources{}, err
		}
	}
	slices.SortFunc(c.Objects, inOrder)
	return c, nil
}

func isEnvelope(o *unstructured.Unstructured) bool {
	return isEnvelopeKind(o.GroupVersionKind().GroupKind())
}

func isEnvelopeKind(kind schema.GroupKind) bool {
	return kind.Group == placement.GroupVersion.Group && (kind.Kind == resourceEnvelope || kind.Kind == clusterResourceEnvelope)
}

// unwrap adds the contents of one envelope, in the order of their keys.
func (s *Selector) unwrap(envelope *unstructured.Unstructured, mayWrap MayWrap, placed map[objectID]bool, c *Resources) error {
	from := placement.EnvelopeIdentifier{Name: envelope.GetName(), Namespace: envelope.GetNamespace(), Type: envelope.GetKind()}
	data, _, err := unstructured.NestedMap(envelope.Object, "data")
	if err != nil {
		return fmt.Errorf("reading the data of %s %s/%s: %w", from.Type, from.Namespace, from.Name, err)
	}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		wrapped, problem := parseManifest(data[name])
		if problem == "" {
			if problem, err = s.misplaced(wrapped, envelope); err != nil {
				return err
			}
		}
		resource := identify(wrapped)
		if problem == "" && placed[idOf(wrapped)] {
			problem = "the placement has this object already: leave one of them out"
		}
		if problem == "" && mayWrap != nil {
			kind, err := s.ResourceOf(wrapped.GroupVersionKind())
			if err != nil {
				return err
			}
			if reason, message, err := mayWrap(envelope, wrapped, kind); err != nil {
				return err
			} else if reason != "" {
				c.Withheld = append(c.Withheld, WithheldObject{resource, reason, message})
				continue
			}
		}
		if problem == "" {
			placed[idOf(wrapped)] = true
			c.Objects, c.Envelopes[resource] = append(c.Objects, wrapped), from
			continue
		}
		resource.Envelope = &from
		c.Refused = append(c.Refused, placement.FailedPlacement{ResourceIdentifier: resource, Condition: metav1.Condition{
			Type: placement.ConditionApplied, Status: metav1.ConditionFalse, Reason: reasons.InvalidManifest,
			Message: fmt.Sprintf("%q in its data cannot be placed: %s", kube.Clip(name, maxName), problem),
		}})
	}
	return nil
}

// parseManifest decodes a manifest. The problem never quotes the manifest, because it may be a
// Secret.
func parseManifest(value any) (wrapped *unstructured.Unstructured, problem string) {
	wrapped = &unstructured.Unstructured{Object: map[string]any{}}
	fields, ok := value.(map[string]any)
	if !ok {
		return wrapped, "it is no object"
	}
	wrapped.Object = runtime.DeepCopyJSON(fields)
	if problem := manifest.CheckTexts(wrapped); problem != "" {
		return wrapped, problem
	}
	kind := wrapped.GroupVersionKind()
	switch {
	case kind.Kind == "" || kind.Version == "":
		return wrapped, "it has no apiVersion or no kind"
	case wrapped.IsList():
		return wrapped, "it is a list: every object needs a manifest of its own"
	case wrapped.GetName() == "":
		return wrapped, "it has no metadata.name"
	case len(kind.Kind) > maxKind || len(wrapped.GetName()) > maxName || len(wrapped.GetAPIVersion()) > maxName ||
		len(wrapped.GetNamespace()) > maxKind:
		return wrapped, "its kind or name is longer than Kubernetes allows"
	}
	stripServer(wrapped)
	return wrapped, ""
}

// misplaced returns the reason why a manifest must not be in its envelope; "" if it may.
func (s *Selector) misplaced(wrapped, envelope *unstructured.Unstructured) (string, error) {
	kind, namespace := wrapped.GroupVersionKind(), envelope.GetNamespace()
	if reservedGroup(kind.Group) {
		return neverOfTheFleet, nil
	}
	switch mapping, err := s.Mapper.RESTMapping(kind.GroupKind(), kind.Version); {
	case meta.IsNoMatchError(err): // members may serve kinds unknown to the hub: the manifest's namespace decides
	case err != nil:
		return "", fmt.Errorf("looking up %s: %w", kind, err)
	case mapping.Scope.Name() == meta.RESTScopeNameRoot && namespace != "":
		return fmt.Sprintf("a %s is cluster-scoped: put it into a ClusterResourceEnvelope", kind.Kind), nil
	case mapping.Scope.Name() == meta.RESTScopeNameNamespace && namespace == "":
		return fmt.Sprintf("a %s is in a namespace: put it into a ResourceEnvelope of that namespace", kind.Kind), nil
	}
	switch {
	case wrapped.GetNamespace() == namespace:
	case namespace == "":
		return "it has a metadata.namespace, and a ClusterResourceEnvelope is for cluster-scoped objects", nil
	case wrapped.GetNamespace() == "":
		return fmt.Sprintf("it has no metadata.namespace: set it to the envelope's namespace %s; cluster-scoped objects need a "+
			"ClusterResourceEnvelope",
			namespace), nil
	default:
		return fmt.Sprintf("its metadata.namespace is not the envelope's namespace %s", namespace), nil
	}
	if kind.Group == "" && kind.Kind == "Namespace" {
		return reservedNamespace(wrapped.GetName(), wrapped.GetLabels(), false), nil
	}
	return "", nil
}

// identify returns the identifier of a manifest, with clipped names.
func identify(o *unstructured.Unstructured) placement.ResourceIdentifier {
	kind := o.GroupVersionKind()
	return placement.ResourceIdentifier{
		Group: kube.Clip(kind.Group, maxName), Version: kube.Clip(kind.Version, maxKind), Kind: kube.Clip(kind.Kind, maxKind),
		Namespace: kube.Clip(o.GetNamespace(), maxKind), Name: kube.Clip(o.GetName(), maxName),
	}
}
