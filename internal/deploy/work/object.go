package work

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/deploy/readiness"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// labelWork on an applied object lets the agent watch just what it applied. Its value is the Work's name, if that fits.
	labelWork = "muster/work"
	// annotationHash on an applied object is the digest of its manifest.
	annotationHash = "kubernetes-fleet.io/spec-hash"
	// annotationLastApplied is what KubeFleet's agent keeps for its three-way merge.
	annotationLastApplied = "kubernetes-fleet.io/last-applied-configuration"
)

// key distinguishes objects, whatever version of the API they are written in.
type key struct {
	schema.GroupKind
	types.NamespacedName
}

func (k key) String() string { return kube.Name(k.Kind, k.Namespace, k.Name) }

// summary is what is kept of an object that was applied.
type summary struct {
	key      key
	uid      types.UID
	version  string
	deleting bool
	// finalizers are those that an object which is being deleted waits for.
	finalizers []string
	owners     []metav1.OwnerReference
	// hash is the digest of the manifest, work the Work's name, as annotation and label of the object say.
	hash, work string
	// fieldDigest changes when somebody else changes a field that was applied, contentDigest when anybody changes anything but the status.
	fieldDigest, contentDigest uint64
	// rival is the manager, other than this agent, that wrote the object last.
	rival     string
	readiness readiness.Result
	// passes says that the object is a Job which Kubernetes deletes when it has ended, ended how that was.
	passes bool
	ended  string
	// stays says that the object is left on the member when its Work is gone.
	stays stay
}

func summarize(object *unstructured.Unstructured) summary {
	r := summary{
		key: key{object.GroupVersionKind().GroupKind(), types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}},
		uid: object.GetUID(), version: object.GetResourceVersion(), deleting: object.GetDeletionTimestamp() != nil,
		finalizers: applied.Finalizers(object), owners: object.GetOwnerReferences(), readiness: readiness.Of(object),
		hash: object.GetAnnotations()[annotationHash], work: object.GetLabels()[labelWork],
		fieldDigest: applied.FieldDigest(object, fieldOwner), contentDigest: applied.ContentDigest(object),
	}
	if r.passes = applied.Passes(object); r.passes {
		r.ended = applied.EndOf(object)
	}
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
	group, _, _ := strings.Cut(owner.APIVersion, "/")
	return owner.Kind == "AppliedWork" && group == placement.GroupVersion.Group
}

// works names the Works that the object says it is of.
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

// isOrphanOf says whether an object is a Work's whose AppliedWork was deleted and is its owner no more.
func (r *summary) isOrphanOf(work string) bool {
	return len(r.works()) == 0 && r.hash != "" && r.work != "" && r.work == labelValue(work)
}

// of says whether an object is an AppliedWork's, or was that of the one in whose place it is.
func (r *summary) of(appliedWork *placement.AppliedWork) bool {
	return r.ownedBy(appliedWork.UID) || r.isOrphanOf(appliedWork.Name)
}
