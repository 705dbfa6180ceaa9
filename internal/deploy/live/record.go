// Package live is what became of deployed objects: whether they are there, ready, and as they were deployed.
//
// Its invariant: it holds a few words about each object that carries the label of a delivery and nothing about any other, however many
// there are, and it asks the API server about an object only after somebody changed what was deployed of it.
package live

import (
	"encoding/binary"
	"hash/fnv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-fleet/muster/internal/agent/readiness"
	"github.com/muster-fleet/muster/internal/deploy/release"
)

// Key is an object.
type Key struct {
	Kind            schema.GroupVersionKind
	Namespace, Name string
}

// String is the object for messages.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Kind.Kind + " " + k.Name
	}
	return k.Kind.Kind + " " + k.Namespace + "/" + k.Name
}

// record is what is remembered of an object.
type record struct {
	uid     types.UID
	created time.Time
	// print changes when somebody else changes what we deployed, and seldom otherwise.
	print     uint64
	readiness readiness.Result
}

func recordOf(object *unstructured.Unstructured) record {
	return record{uid: object.GetUID(), created: object.GetCreationTimestamp().Time, print: fingerprint(object), readiness: readiness.Of(object)}
}

// fingerprint is a digest of which fields we own. Kubernetes takes a field away from us when another client gives it another value, so
// that no field of ours changes as long as the digest is the same. What we did not apply, an upstream agent's, changes it with every write.
func fingerprint(object *unstructured.Unstructured) uint64 {
	digest := fnv.New64a()
	digest.Write([]byte(object.GetUID()))
	// Another release of ours owns the same fields under the same name.
	digest.Write([]byte(object.GetAnnotations()[releaseName]))
	if object.GetDeletionTimestamp() != nil {
		digest.Write([]byte("going"))
	}
	fields := object.GetManagedFields()
	for _, entry := range fields {
		if entry.Manager == release.FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" && entry.FieldsV1 != nil {
			digest.Write(entry.FieldsV1.GetRawBytes())
			return digest.Sum64()
		}
	}
	for _, entry := range fields {
		if entry.Subresource != "" {
			continue
		}
		digest.Write([]byte(entry.Manager))
		if entry.Time != nil {
			digest.Write(binary.BigEndian.AppendUint64(nil, uint64(entry.Time.Unix()))) //nolint:gosec // any bits do
		}
	}
	return digest.Sum64()
}
