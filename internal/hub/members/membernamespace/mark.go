package membernamespace

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/kube"
)

// conditionProcessed of a Cluster says whether its namespace exists.
const conditionProcessed = "Processed"

// inherits reports whether a namespace without a mark may be taken over. A hub of an earlier version created it after the
// Cluster, whose status shows that it is used. A namespace that somebody else has created beforehand is older than the
// Cluster, or has the name of an epoch that is still to come. To delete it, the name of the Cluster is enough.
func (m Member) inherits(namespace client.Object) bool {
	created := namespace.GetCreationTimestamp()
	return m.ending || m.prepared && !created.Time.Before(m.since.Time)
}

// Mark takes over the namespace of a member that a hub of an earlier version created, once. From then on no namespace but
// one with the mark is the member's.
func (m Member) Mark(ctx context.Context, c client.Client) error {
	namespace := kube.CoreMetadata("Namespace")
	if err := c.Get(ctx, types.NamespacedName{Name: m.Namespace}, namespace); err != nil {
		return client.IgnoreNotFound(err)
	}
	if namespace.Annotations[membership.AnnotationRecordUID] != "" || namespace.DeletionTimestamp != nil || !m.MadeFor(namespace) {
		return nil
	}
	return client.IgnoreNotFound(m.adopt(ctx, c, namespace))
}

// Marked reports whether the hub created a namespace for this record, though the namespace may have lost its label or owner
// since, without which it is not used.
func (m Member) Marked(namespace client.Object) bool {
	return namespace.GetAnnotations()[membership.AnnotationRecordUID] == string(m.UID)
}

// Stray is a namespace that the hub created for a member, with the record that it was created for.
type Stray struct {
	Member
	// Kind of the record.
	Kind schema.GroupVersionKind
}

// StrayOf returns the member that a namespace with the hub's label was created for, as the namespace itself says, and false
// if it says nothing of that. Its UID is empty if a hub of an earlier version created the namespace.
func StrayOf(namespace client.Object) (Stray, bool) {
	m := Member{Namespace: namespace.GetName(), UID: types.UID(namespace.GetAnnotations()[membership.AnnotationRecordUID]), ending: true}
	if key, ok := membership.RecordOf(namespace); ok {
		m.Workspace, m.Name = key.Namespace, key.Name
		return Stray{m, fleet.GroupVersion.WithKind("Cluster")}, true
	}
	owner := metav1.GetControllerOf(namespace)
	if owner == nil || owner.Kind != "MemberCluster" {
		return Stray{}, false
	}
	m.Name, m.UID = owner.Name, owner.UID
	return Stray{m, clusterv1beta1.GroupVersion.WithKind("MemberCluster")}, true
}

// HasRecord reports whether the API server, or the cache, has the record that the namespace was created for.
func (s Stray) HasRecord(ctx context.Context, reader client.Reader) (bool, error) {
	record := kube.Metadata(s.Kind)
	err := reader.Get(ctx, types.NamespacedName{Namespace: s.Workspace, Name: s.Name}, record)
	if apierrors.IsNotFound(err) && !kube.NotServed(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for the %s of namespace %s: %w", s.Kind.Kind, s.Namespace, err)
	}
	return s.UID == "" || record.UID == s.UID, nil
}
