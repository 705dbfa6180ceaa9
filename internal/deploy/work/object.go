package work

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	delivered "github.com/muster-fleet/muster/internal/delivery/manifest"
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/deploy/readiness"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// labelWork is the label of applied objects, to limit the agent's watches to them. Its value is
	// the name of the Work, if it fits.
	labelWork = "muster/work"
	// annotationHash is the annotation of an applied object for the digest of its manifest.
	annotationHash = "kubernetes-fleet.io/spec-hash"
	// annotationLastApplied is the annotation of KubeFleet's agent for its three-way merge.
	annotationLastApplied = "kubernetes-fleet.io/last-applied-configuration"
)

// key identifies an object, regardless of the API version.
type key struct {
	schema.GroupKind
	types.NamespacedName
}

func (k key) String() string { return kube.Name(k.Kind, k.Namespace, k.Name) }

// summary is the stored part of an applied object.
type summary struct {
	key      key
	uid      types.UID
	version  string
	deleting bool
	// finalizers are the finalizers of an object in deletion.
	finalizers []string
	owners     []metav1.OwnerReference
	// hash is the digest of the manifest from the annotation, work the name of the Work from the
	// label.
	hash, work string
	// fieldDigest changes with each applied field, contentDigest with any field except the status.
	fieldDigest, contentDigest uint64
	// replicas is the number in the spec, scaler the bounds of the autoscaler when the manifest was
	// applied; nil if it was not looked up.
	replicas int64
	scaler   *delivered.Bounds
	// rival is the last manager of the object besides this agent.
	rival     string
	readiness readiness.Result
	// ended is the end of a Job; empty for a running Job.
	ended string
	// stays is set if the object stays on the member without its Work.
	stays stay
}

func summarize(object *unstructured.Unstructured) summary {
	r := summary{
		key: key{object.GroupVersionKind().GroupKind(), types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}},
		uid: object.GetUID(), version: object.GetResourceVersion(), deleting: object.GetDeletionTimestamp() != nil,
		finalizers: applied.Finalizers(object), owners: object.GetOwnerReferences(), readiness: readiness.Of(object),
		hash: object.GetAnnotations()[annotationHash], work: object.GetLabels()[labelWork],
		fieldDigest: applied.FieldDigest(object, fieldOwner), contentDigest: applied.ContentDigest(object),
		replicas: delivered.Replicas(object),
	}
	r.ended = applied.EndOf(object)
	r.stays = stayOf(object)
	var newest metav1.Time
	for _, attempt := range object.GetManagedFields() {
		if attempt.Manager != fieldOwner && attempt.Subresource == "" && attempt.Time != nil && !attempt.Time.Before(&newest) {
			r.rival, newest = attempt.Manager, *attempt.Time
		}
	}
	return r
}

func isAppliedWork(owner metav1.OwnerReference) bool {
	return kube.IsOwner(owner, placement.GroupVersion.WithKind("AppliedWork").GroupKind())
}

// works returns the names of the owning Works of the object.
func (r *summary) works() []string {
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

func (r *summary) ownedBy(uid types.UID) bool {
	return slices.ContainsFunc(r.owners, func(owner metav1.OwnerReference) bool { return owner.UID == uid })
}

// isOrphanOf reports whether an object belongs to a Work but has lost its AppliedWork as an owner.
func (r *summary) isOrphanOf(work string) bool {
	return len(r.works()) == 0 && r.hash != "" && r.work != "" && r.work == labelValue(work)
}

// of reports whether an object belongs to an AppliedWork, or to the one replaced by it.
func (r *summary) of(appliedWork *placement.AppliedWork) bool {
	return r.ownedBy(appliedWork.UID) || r.isOrphanOf(appliedWork.Name)
}
