// Package membernamespace is what stands behind a record of either kind: the member namespace, the identity that has access there and nowhere else, the
// report, and the status that the record shows.
//
// The package owns everything in a member namespace but the report's status and the heartbeats. Its invariant: a namespace that the hub did not create
// for this very record is never used, changed or deleted.
package membernamespace

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// Member is one member as seen from its record.
type Member struct {
	// Name and Workspace are those of the record; a MemberCluster has no workspace.
	Name, Workspace string
	// UID of the record.
	UID types.UID
	// prepared and since let a namespace of an earlier version be taken over; see inherits.
	prepared bool
	since    metav1.Time
	// ending: the namespace is not used any more, only deleted.
	ending bool
	// Namespace is the member namespace. It is another one in each epoch, which is how often the member was revoked.
	Namespace string
	Epoch     int
	// long are the epochs whose namespace has a name with a long digest.
	long membership.Epochs
}

// OfCluster returns the member behind a Cluster.
func OfCluster(cluster *fleet.Cluster) Member {
	m := Member{Name: cluster.Name, Workspace: cluster.Namespace, UID: cluster.UID, since: cluster.CreationTimestamp, long: membership.LongDigests(cluster)}
	m = m.at(membership.Epoch(cluster))
	processed := kube.FindCondition(cluster.Status.Conditions, conditionProcessed)
	m.prepared = cluster.Status.Namespace == m.Namespace || processed != nil && processed.Status == corev1.ConditionTrue
	return m
}

// OfMemberCluster returns the member behind a MemberCluster.
func OfMemberCluster(mc *clusterv1beta1.MemberCluster) Member {
	m := Member{Name: mc.Name, UID: mc.UID}
	return m.at(membership.Epoch(mc))
}

// Of returns the member behind a record, which is a Cluster or a MemberCluster.
func Of(record client.Object) Member {
	if cluster, ok := record.(*fleet.Cluster); ok {
		return OfCluster(cluster)
	}
	return OfMemberCluster(record.(*clusterv1beta1.MemberCluster))
}

// MemberClusterOf leads from the name of a member namespace back to the name of a MemberCluster that was never revoked.
func MemberClusterOf(namespace string) (string, bool) {
	return strings.CutPrefix(namespace, naming.MemberClusterNamespace(""))
}

// ToCluster returns the request for the Cluster of an object in a member namespace, or of the namespace itself.
func ToCluster(_ context.Context, o client.Object) []reconcile.Request {
	key, ok := membership.RecordOf(o)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// ClusterOfNamespace returns the request for the Cluster of a member namespace that is known by its name.
func ClusterOfNamespace(ctx context.Context, reader client.Reader, name string) []reconcile.Request {
	namespace := kube.CoreMetadata("Namespace")
	if err := reader.Get(ctx, types.NamespacedName{Name: name}, namespace); err != nil {
		if !apierrors.IsNotFound(err) { // a member that has left has none
			ctrl.LoggerFrom(ctx).Error(err, "Looking for the Cluster of a member namespace", "namespace", name)
		}
		return nil
	}
	return ToCluster(ctx, namespace)
}

// meta is the metadata of an object that belongs to a member.
func (m Member) meta(namespace, name string) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{fleet.LabelManaged: "true"}}
	if m.Workspace == "" {
		meta.Labels[clusterv1beta1.LabelFleetResource] = "true"
		controller := true
		meta.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: clusterv1beta1.GroupVersion.String(), Kind: "MemberCluster", Name: m.Name, UID: m.UID, Controller: &controller,
		}}
		return meta
	}
	meta.Annotations = map[string]string{fleet.AnnotationClusterNamespace: m.Workspace, fleet.LabelCluster: m.Name}
	return meta
}

// NamespaceState says what stands at the name of a member namespace.
type NamespaceState string

// The states of a member namespace.
const (
	NamespaceAbsent NamespaceState = "Absent"
	NamespaceOurs   NamespaceState = "Ours"
	// NamespaceInherited: KubeFleet's hub made it for this very record, and Muster has not labelled it yet.
	NamespaceInherited   NamespaceState = "Inherited"
	NamespaceTaken       NamespaceState = "Taken"
	NamespaceTerminating NamespaceState = "Terminating"
)

// ObserveNamespace reads the member namespace, whose metadata is nil if there is none.
func (m Member) ObserveNamespace(ctx context.Context, reader client.Reader) (NamespaceState, *metav1.PartialObjectMetadata, error) {
	namespace := kube.CoreMetadata("Namespace")
	err := reader.Get(ctx, types.NamespacedName{Name: m.Namespace}, namespace)
	if apierrors.IsNotFound(err) {
		return NamespaceAbsent, nil, nil
	}
	if err != nil {
		return "", nil, fmt.Errorf("reading namespace %s: %w", m.Namespace, err)
	}
	switch {
	case m.predecessor(namespace):
		return NamespaceTerminating, namespace, nil
	case !m.MadeFor(namespace):
		return NamespaceTaken, namespace, nil
	case namespace.DeletionTimestamp != nil:
		return NamespaceTerminating, namespace, nil
	case namespace.Labels[fleet.LabelManaged] != "true":
		return NamespaceInherited, namespace, nil
	}
	return NamespaceOurs, namespace, nil
}

// predecessor returns whether the namespace is that of a deleted record of the same name, and so about to be deleted.
func (m Member) predecessor(namespace client.Object) bool {
	if key, ok := membership.RecordOf(namespace); ok && m.Workspace != "" {
		uid := namespace.GetAnnotations()[membership.AnnotationRecordUID]
		return key == types.NamespacedName{Namespace: m.Workspace, Name: m.Name} && uid != "" && types.UID(uid) != m.UID
	}
	owner := metav1.GetControllerOf(namespace)
	return m.Workspace == "" && owner != nil && owner.Kind == "MemberCluster" && owner.Name == m.Name && owner.UID != m.UID
}

// MadeFor returns whether a namespace was created for this very record. The UID in an annotation proves that, which the hub
// writes when it creates the namespace, and which an admission policy lets nobody else write. A namespace of an earlier
// version, or of a hub of KubeFleet, has none until the hub takes it over. The owner reference to a MemberCluster proves as
// much, because both Muster's and KubeFleet's hub set it when they create the namespace and at no other time.
func (m Member) MadeFor(namespace client.Object) bool {
	uid, marked := namespace.GetAnnotations()[membership.AnnotationRecordUID]
	if marked && types.UID(uid) != m.UID {
		return false
	}
	if m.Workspace == "" {
		owner := metav1.GetControllerOf(namespace)
		return owner != nil && owner.UID == m.UID
	}
	key, ok := membership.RecordOf(namespace)
	return ok && key == types.NamespacedName{Namespace: m.Workspace, Name: m.Name} && namespace.GetLabels()[fleet.LabelManaged] == "true" && (marked || m.inherits(namespace))
}

// CreateNamespace creates the member namespace and returns its state. A namespace that exists is adopted only if KubeFleet's hub created it for this
// very record. The record has to exist on the API server: after a restore from a snapshot the cache may for a while show one that is no more, and an agent
// that asked to be that member would get an identity of which nothing is shown anywhere.
func (m Member) CreateNamespace(ctx context.Context, c client.Client, live client.Reader) (NamespaceState, error) {
	if err := m.proveRecord(ctx, live); err != nil {
		return "", err
	}
	meta := m.meta("", m.Namespace)
	metav1.SetMetaDataAnnotation(&meta, membership.AnnotationRecordUID, string(m.UID))
	err := c.Create(ctx, &corev1.Namespace{ObjectMeta: meta}, kube.FieldOwner)
	if apierrors.IsAlreadyExists(err) {
		state, namespace, err := m.ObserveNamespace(ctx, live)
		if err != nil || state != NamespaceInherited {
			return state, err
		}
		return NamespaceOurs, m.adopt(ctx, c, namespace)
	}
	if err != nil {
		return "", fmt.Errorf("creating namespace %s: %w", m.Namespace, err)
	}
	return NamespaceOurs, nil
}

// Taken says why a namespace that is not the member's cannot be used, and what to do. Of a Cluster in another workspace the text
// says nothing, not even the name of the workspace.
func (m Member) Taken(namespace client.Object) string {
	kind := "MemberCluster"
	if m.Workspace != "" {
		kind = "Cluster"
	}
	holder, ok := types.NamespacedName{}, false
	if namespace != nil && namespace.GetLabels()[fleet.LabelManaged] == "true" {
		holder, ok = membership.RecordOf(namespace)
	}
	switch {
	case !ok || kind != "Cluster" || holder == types.NamespacedName{Namespace: m.Workspace, Name: m.Name}:
		return fmt.Sprintf("namespace %s exists and was not made for this %s: delete it, or delete the %s and create it under another name", m.Namespace, kind, kind)
	case holder.Namespace == m.Workspace:
		return fmt.Sprintf("namespace %s is the member namespace of Cluster %s: delete this Cluster and create it under another name", m.Namespace, holder)
	}
	return fmt.Sprintf("namespace %s is the member namespace of a Cluster in another workspace: delete this Cluster and create it under another name", m.Namespace)
}

// proveRecord fails if the record of the member is not there any more.
func (m Member) proveRecord(ctx context.Context, live client.Reader) error {
	kind := fleet.GroupVersion.WithKind("Cluster")
	if m.Workspace == "" {
		kind = clusterv1beta1.GroupVersion.WithKind("MemberCluster")
	}
	key, record := types.NamespacedName{Namespace: m.Workspace, Name: m.Name}, kube.Metadata(kind)
	name := kind.Kind + " " + strings.TrimPrefix(key.String(), "/")
	if err := live.Get(ctx, key, record); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading %s, before its namespace is created: %w", name, err)
	}
	if record.UID != m.UID {
		return fmt.Errorf("%s with UID %s is gone, or was replaced a moment ago: its namespace %s is not created", name, m.UID, m.Namespace)
	}
	return nil
}

// adopt marks a namespace that KubeFleet's hub, or a hub of an earlier version, created for this record, if nobody has
// written to it since it was read.
func (m Member) adopt(ctx context.Context, c client.Client, namespace *metav1.PartialObjectMetadata) error {
	after := namespace.DeepCopy()
	metav1.SetMetaDataLabel(&after.ObjectMeta, fleet.LabelManaged, "true")
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, membership.AnnotationRecordUID, string(m.UID))
	if err := kube.Patch(ctx, c, namespace, after); err != nil {
		return fmt.Errorf("taking over namespace %s: %w", namespace.Name, err)
	}
	return nil
}

// DeleteNamespace deletes the member namespace, if it is the member's.
func (m Member) DeleteNamespace(ctx context.Context, c client.Client, live client.Reader) error {
	state, namespace, err := m.ObserveNamespace(ctx, live)
	if err != nil || state != NamespaceOurs && state != NamespaceInherited {
		return err
	}
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace.Name}}
	if err := c.Delete(ctx, object, client.Preconditions{UID: &namespace.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting namespace %s: %w", namespace.Name, err)
	}
	return nil
}

// Placed names the Works and BundleDeployments of a member by kind and name.
func (m Member) Placed(ctx context.Context, live client.Reader) ([]string, error) {
	var placed []string
	for _, kind := range []schema.GroupVersionKind{placement.GroupVersion.WithKind("Work"), fleet.GroupVersion.WithKind("BundleDeployment")} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := live.List(ctx, list, client.InNamespace(m.Namespace)); err != nil && !kube.NotServed(err) {
			return nil, fmt.Errorf("listing the %ss of %s: %w", kind.Kind, m.Namespace, err)
		}
		for i := range list.Items {
			placed = append(placed, kind.Kind+" "+list.Items[i].Name)
		}
	}
	slices.Sort(placed)
	return placed, nil
}
