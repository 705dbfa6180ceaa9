package work

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/agent/readiness"
)

const (
	// labelWork on an applied object lets the agent watch just what it applied. Its value is the Work's name, if that fits.
	labelWork = "muster/work"
	// annotationHash on an applied object is the digest of its manifest.
	annotationHash = "kubernetes-fleet.io/spec-hash"
	// annotationLastApplied is what KubeFleet's agent keeps for its three-way merge.
	annotationLastApplied = "kubernetes-fleet.io/last-applied-configuration"
)

// key tells objects apart, whatever version of the API they are written in.
type key struct {
	schema.GroupKind
	types.NamespacedName
}

func (k key) String() string {
	if k.Namespace == "" {
		return k.Kind + " " + k.Name
	}
	return k.Kind + " " + k.Namespace + "/" + k.Name
}

// record is what is kept of an object that was applied.
type record struct {
	key      key
	uid      types.UID
	version  string
	deleting bool
	// finalizers hold the object when it is deleted.
	finalizers []string
	owners     []metav1.OwnerReference
	hash       string
	// work is the label by which the agent knows what it applied.
	work string
	// fields is a digest of the fields that are still as this agent applied them: whoever changes one takes it away from here.
	fields string
	// content is a digest of everything but the status.
	content string
	// rival is who else wrote the object last.
	rival     string
	readiness readiness.Result
}

func recordOf(object *unstructured.Unstructured) record {
	r := record{
		key: key{object.GroupVersionKind().GroupKind(), types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}},
		uid: object.GetUID(), version: object.GetResourceVersion(), deleting: object.GetDeletionTimestamp() != nil,
		finalizers: object.GetFinalizers(), owners: object.GetOwnerReferences(),
		hash: object.GetAnnotations()[annotationHash], work: object.GetLabels()[labelWork], content: contentOf(object), readiness: readiness.Of(object),
	}
	var newest metav1.Time
	for _, entry := range object.GetManagedFields() {
		switch {
		case entry.Manager == fieldOwner && entry.Operation == metav1.ManagedFieldsOperationApply && entry.FieldsV1 != nil:
			r.fields = digest(entry.FieldsV1.GetRawBytes())
		case entry.Manager != fieldOwner && entry.Subresource == "" && entry.Time != nil && !entry.Time.Before(&newest):
			r.rival, newest = entry.Manager, *entry.Time
		}
	}
	return r
}

// contentOf is a digest of what somebody has to write for it to change.
func contentOf(object *unstructured.Unstructured) string {
	content := maps.Clone(object.Object)
	delete(content, "status")
	if metadata, ok := content["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
			delete(metadata, field)
		}
		content["metadata"] = metadata
	}
	text, err := json.Marshal(content)
	if err != nil {
		return object.GetResourceVersion() // what came as JSON can be written as such
	}
	return digest(text)
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func isAppliedWork(owner metav1.OwnerReference) bool {
	group, _, _ := strings.Cut(owner.APIVersion, "/")
	return owner.Kind == "AppliedWork" && group == placement.GroupVersion.Group
}

// works names the Works that the object says it is of.
func (r *record) works() []string {
	if r == nil {
		return nil
	}
	var names []string
	for _, owner := range r.owners {
		if isAppliedWork(owner) {
			names = append(names, owner.Name)
		}
	}
	return names
}

func (r *record) ownedBy(uid types.UID) bool {
	return slices.ContainsFunc(r.owners, func(owner metav1.OwnerReference) bool { return owner.UID == uid })
}

// leftBehind says whether an object is a Work's whose AppliedWork was deleted and is its owner no more.
func (r *record) leftBehind(work string) bool {
	return len(r.works()) == 0 && r.hash != "" && r.work != "" && r.work == labelValue(work)
}

// heldBy names the finalizers that Kubernetes does not remove by itself.
func (r *record) heldBy() []string {
	if !r.deleting {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(r.finalizers), func(name string) bool {
		return name == metav1.FinalizerDeleteDependents || name == metav1.FinalizerOrphanDependents
	})
}
