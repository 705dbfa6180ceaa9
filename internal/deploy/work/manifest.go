package work

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	delivered "github.com/muster-fleet/muster/internal/delivery/manifest"
	"github.com/muster-fleet/muster/internal/naming"
)

const secretKind = "Secret"

// manifest is one object to apply.
type manifest struct {
	ordinal int
	gvk     schema.GroupVersionKind
	key     key
	// resource is the API resource of the kind; empty if the kind is not served.
	resource schema.GroupVersionResource
	hash     string
	raw      []byte
	// merges is set if several entries of one key count as one, as in an apply on the client.
	merges bool
	// ignored are the fields left to others.
	ignored delivered.Ignored
	// problem is the reason if this manifest can never be applied.
	problem string
}

// manifestsOf reads the manifests of a Work.
func manifestsOf(work *placement.Work) []manifest {
	manifests := make([]manifest, 0, len(work.Spec.Workload.Manifests))
	first, merges := map[key]int{}, strategyOf(work.Spec.ApplyStrategy).merges
	for i, given := range work.Spec.Workload.Manifests {
		m := read(i, given.Raw, merges)
		if strategy := work.Spec.ApplyStrategy; strategy != nil {
			m.ignore(strategy.IgnoreDifferences)
		}
		if twin, twice := first[m.key]; m.problem == "" && twice {
			m.problem = fmt.Sprintf("it is the same object as manifest %d: leave one of them out", twin)
		} else if m.problem == "" {
			first[m.key] = i
		}
		manifests = append(manifests, m)
	}
	return manifests
}

func read(ordinal int, raw []byte, merges bool) manifest {
	m := manifest{ordinal: ordinal, raw: raw, merges: merges}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &object.Object); err != nil {
		// The error would quote the manifest, and it may be a Secret.
		m.problem = "it is no JSON object"
		return m
	}
	m.gvk = object.GroupVersionKind()
	m.key = key{m.gvk.GroupKind(), types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}}
	if merges {
		delivered.MergeDuplicates(object)
	}
	mistake := delivered.Check(object)
	switch {
	case m.gvk.Kind == "" || m.gvk.Version == "":
		m.problem = "it has no apiVersion or no kind"
	case strings.HasSuffix(m.gvk.Kind, "List") && object.IsList():
		m.problem = fmt.Sprintf("it is a %s: every object needs a manifest of its own", m.gvk.Kind)
	case mistake != "":
		m.problem = mistake
	case m.key.Name == "":
		m.problem = "it has no metadata.name"
	}
	canonical, err := json.Marshal(m.object().Object)
	if err != nil {
		m.problem = "it cannot be written as JSON"
	}
	m.hash = naming.Digest(canonical)
	return m
}

// ignore sets the ignored fields. They are part of the hash: a field is applied again once it is no
// longer ignored.
func (m *manifest) ignore(rules []placement.IgnoredFields) {
	var pointers []string
	for _, rule := range rules {
		if rule.Selects(m.gvk.Group, m.gvk.Kind, m.key.Namespace, m.key.Name) {
			pointers = append(pointers, rule.JSONPointers...)
		}
	}
	if m.problem != "" || len(pointers) == 0 {
		return
	}
	var err error
	if m.ignored, err = delivered.Ignore(m.object(), pointers); err != nil {
		m.problem = err.Error()
	}
	m.hash = naming.Digest(m.hash + " " + strings.Join(pointers, " "))
}

// object returns the manifest to apply, without fields from the cluster of its origin.
func (m manifest) object() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(m.raw, &object.Object); err != nil || object.Object == nil {
		return &unstructured.Unstructured{Object: map[string]any{}}
	}
	delete(object.Object, "status")
	unstructured.RemoveNestedField(object.Object, "metadata", "ownerReferences")
	if m.merges {
		delivered.MergeDuplicates(object)
	}
	delivered.Normalize(object)
	return object
}

// resolve looks up the resource of the kind, and checks the namespace against its scope.
func (m *manifest) resolve(mapper meta.RESTMapper) error {
	if m.problem != "" {
		return nil
	}
	mapping, err := mapper.RESTMapping(m.gvk.GroupKind(), m.gvk.Version)
	if err != nil {
		return err
	}
	m.resource = mapping.Resource
	switch namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace; {
	case namespaced && m.key.Namespace == "":
		m.problem = "it has no metadata.namespace, and its kind needs one"
	case !namespaced && m.key.Namespace != "":
		m.problem = fmt.Sprintf("it has metadata.namespace %s, and its kind has none", m.key.Namespace)
	}
	return nil
}

func (m manifest) identifier() placement.WorkResourceIdentifier {
	return placement.WorkResourceIdentifier{
		Ordinal: m.ordinal, Group: m.gvk.Group, Version: m.gvk.Version, Kind: m.gvk.Kind,
		Resource: m.resource.Resource, Namespace: m.key.Namespace, Name: m.key.Name,
	}
}

// String names the manifest for people.
func (m manifest) String() string {
	if m.gvk.Kind == "" {
		return fmt.Sprintf("manifest %d", m.ordinal)
	}
	return fmt.Sprintf("manifest %d (%s)", m.ordinal, m.key)
}

// basic reports whether other objects may depend on this one.
func (k key) basic() bool {
	return k.GroupKind == schema.GroupKind{Kind: "Namespace"} ||
		k.GroupKind == schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
}

// inOrder sorts manifests for applying: first the basic ones, the rest in the given order.
func inOrder(manifests []manifest) []manifest {
	sorted := slices.Clone(manifests)
	rank := func(m manifest) int {
		if m.key.basic() {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(sorted, func(a, b manifest) int { return cmp.Compare(rank(a), rank(b)) })
	return sorted
}

// resourceOf returns the API resource of an applied object.
func resourceOf(id placement.WorkResourceIdentifier) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: id.Group, Version: id.Version, Resource: id.Resource}
}

func keyOf(id placement.WorkResourceIdentifier) key {
	return key{schema.GroupKind{Group: id.Group, Kind: id.Kind}, types.NamespacedName{Namespace: id.Namespace, Name: id.Name}}
}

// labelValue returns the name of the Work if a label can hold it, else an empty string.
func labelValue(work string) string {
	if len(validation.IsValidLabelValue(work)) > 0 {
		return ""
	}
	return work
}
