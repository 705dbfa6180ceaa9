package membernamespace

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/kube"
)

// conditionProcessed of a Cluster shows whether its namespace exists.
const conditionProcessed = "Processed"

// inherits reports whether the hub may take over a namespace without a mark. A hub of an earlier
// version created such a namespace after the Cluster, and the Cluster's status shows its use. A
// namespace prepared by another user is older than the Cluster, or has the name of a future epoch.
// For a deletion, the name of the Cluster is proof enough.
func (m Member) inherits(namespace client.Object) bool {
	created := namespace.GetCreationTimestamp()
	return m.ending || m.prepared && !created.Time.Before(m.since.Time)
}

// Mark takes over, once, a member's namespace created by a hub of an earlier version. From then on
// only a namespace with the mark is the member's.
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

// Marked reports whether the hub created a namespace for this membership object. The namespace may
// have lost its label or owner since; the hub then does not use it.
func (m Member) Marked(namespace client.Object) bool {
	return namespace.GetAnnotations()[membership.AnnotationRecordUID] == string(m.UID)
}

// Stray is a namespace created by the hub for a member, with a reference to the membership object.
type Stray struct {
	Member
	// Kind of the membership object.
	Kind schema.GroupVersionKind
}

// StrayOf returns the member of a namespace with the hub's label, read from the namespace itself,
// and false if the namespace names none. UID is empty if a hub of an earlier version created the
// namespace.
func StrayOf(namespace client.Object) (Stray, bool) {
	m := Member{Namespace: namespace.GetName(), UID: types.UID(namespace.GetAnnotations()[membership.AnnotationRecordUID]), ending: true}
	if key, ok := membership.RecordOf(namespace); ok {
		m.Workspace, m.Name = key.Namespace, key.Name
		return Stray{m, fleet.GroupVersion.WithKind("Cluster")}, true
	}
	kind := clusterv1beta1.GroupVersion.WithKind("MemberCluster")
	owner := kube.ControllerOf(namespace, kind.GroupKind())
	if owner == nil {
		return Stray{}, false
	}
	m.Name, m.UID = owner.Name, owner.UID
	return Stray{m, kind}, true
}

// HasRecord reports whether the reader has the membership object of the namespace.
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
