// Package membernamespace manages the objects of one member, Cluster or MemberCluster: the member
// namespace, the identity with access there and nowhere else, and the report.
//
// The package owns everything in a member namespace except the report's status and the heartbeats.
// Its invariant: the hub uses, changes and deletes only namespaces it created for exactly this
// membership object.
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

// Member is one member, derived from its membership object.
type Member struct {
	// Name and Workspace are the name and the namespace of the membership object; a MemberCluster has
	// no workspace.
	Name, Workspace string
	// UID of the membership object.
	UID types.UID
	// Proven: the API server has just confirmed the membership object with this UID.
	Proven bool
	// prepared and since allow the hub to take over a namespace of an earlier version; see inherits.
	prepared bool
	since    metav1.Time
	// ending: the hub no longer uses the namespace, and only deletes it.
	ending bool
	// Namespace is the member namespace, another one in each epoch. Epoch is the number of revocations
	// of the member.
	Namespace string
	Epoch     int
	// long lists the epochs with a long digest in the name of their namespace.
	long membership.Epochs
}

// OfCluster returns the member of a Cluster.
func OfCluster(cluster *fleet.Cluster) Member {
	m := Member{
		Name: cluster.Name, Workspace: cluster.Namespace, UID: cluster.UID, since: cluster.CreationTimestamp,
		long: membership.LongDigests(cluster),
	}
	m = m.at(membership.Epoch(cluster))
	processed := kube.FindCondition(cluster.Status.Conditions, conditionProcessed)
	m.prepared = cluster.Status.Namespace == m.Namespace || processed != nil && processed.Status == corev1.ConditionTrue
	return m
}

// OfMemberCluster returns the member of a MemberCluster.
func OfMemberCluster(mc *clusterv1beta1.MemberCluster) Member {
	m := Member{Name: mc.Name, UID: mc.UID}
	return m.at(membership.Epoch(mc))
}

// Of returns the member of a Cluster or a MemberCluster.
func Of(record client.Object) Member {
	if cluster, ok := record.(*fleet.Cluster); ok {
		return OfCluster(cluster)
	}
	return OfMemberCluster(record.(*clusterv1beta1.MemberCluster))
}

// MemberClusterOf maps the name of a member namespace to the name of its MemberCluster, if it was
// never revoked.
func MemberClusterOf(namespace string) (string, bool) {
	return strings.CutPrefix(namespace, naming.MemberClusterNamespace(""))
}

// ToCluster returns the request for the Cluster of an object in a member namespace, or of the
// namespace itself.
func ToCluster(_ context.Context, o client.Object) []reconcile.Request {
	key, ok := membership.RecordOf(o)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// IndexClientID finds Clusters and their registration requests by client ID. The controller of the
// requests registers it.
const IndexClientID = "registration.clientID"

// ClusterOfNamespace returns the request for the Cluster of a member namespace with the given name.
func ClusterOfNamespace(ctx context.Context, reader client.Reader, name string) []reconcile.Request {
	namespace := kube.CoreMetadata("Namespace")
	if err := reader.Get(ctx, types.NamespacedName{Name: name}, namespace); err != nil {
		if !apierrors.IsNotFound(err) { // a member has no namespace after it left
			ctrl.LoggerFrom(ctx).Error(err, "Failed to find the Cluster of a member namespace", "namespace", name)
		}
		return nil
	}
	return ToCluster(ctx, namespace)
}

// MemberClusterOfNamespace returns the request for the MemberCluster of a member namespace with the
// given name. After a revocation the name has a suffix, and only the owner identifies the member.
func MemberClusterOfNamespace(ctx context.Context, reader client.Reader, namespaceName string) []reconcile.Request {
	name, ok := MemberClusterOf(namespaceName)
	if !ok {
		return nil
	}
	namespace := kube.CoreMetadata("Namespace")
	if err := reader.Get(ctx, types.NamespacedName{Name: namespaceName}, namespace); err == nil {
		if owner := kube.ControllerOf(namespace, clusterv1beta1.GroupVersion.WithKind("MemberCluster").GroupKind()); owner != nil {
			name = owner.Name
		}
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
}

// meta returns the metadata of an object of a member.
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

// NamespaceState is the state of the namespace with a member namespace's name.
type NamespaceState string

// The states of a member namespace.
const (
	NamespaceAbsent NamespaceState = "Absent"
	NamespaceOurs   NamespaceState = "Ours"
	// NamespaceInherited: KubeFleet's hub created it for exactly this membership object, and Muster
	// has not labelled it yet.
	NamespaceInherited   NamespaceState = "Inherited"
	NamespaceTaken       NamespaceState = "Taken"
	NamespaceTerminating NamespaceState = "Terminating"
)

// ObserveNamespace reads the member namespace. The returned metadata is nil if there is none.
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

// predecessor reports whether the namespace belongs to a deleted membership object of the same
// name, and is about to be deleted.
func (m Member) predecessor(namespace client.Object) bool {
	if key, ok := membership.RecordOf(namespace); ok && m.Workspace != "" {
		uid := namespace.GetAnnotations()[membership.AnnotationRecordUID]
		return key == types.NamespacedName{Namespace: m.Workspace, Name: m.Name} && uid != "" && types.UID(uid) != m.UID
	}
	owner := kube.ControllerOf(namespace, clusterv1beta1.GroupVersion.WithKind("MemberCluster").GroupKind())
	return m.Workspace == "" && owner != nil && owner.Name == m.Name && owner.UID != m.UID
}

// MadeFor reports whether a namespace was created for exactly this membership object. The UID in an
// annotation proves it: the hub writes the UID at creation, and an admission policy denies other
// writers. A namespace of an earlier version, or of a KubeFleet hub, has no UID until the hub takes
// it over. The owner reference to a MemberCluster proves as much. Muster's and KubeFleet's hubs set
// it at creation and at no other time.
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
	return ok && key == types.NamespacedName{Namespace: m.Workspace, Name: m.Name} && namespace.GetLabels()[fleet.LabelManaged] == "true" &&
		(marked || m.inherits(namespace))
}

// CreateNamespace creates the member namespace. It returns its state, and whether it is new and so
// empty. It adopts an existing namespace only if KubeFleet's hub created it for exactly this
// membership object. The membership object must exist on the API server. After a restore from a
// snapshot, the cache may for a while show a deleted object. An agent registering as this member
// would get an identity without any visible owner.
func (m Member) CreateNamespace(ctx context.Context, c client.Client, live client.Reader) (state NamespaceState, empty bool, err error) {
	if err := m.proveRecord(ctx, live); err != nil {
		return "", false, err
	}
	meta := m.meta("", m.Namespace)
	metav1.SetMetaDataAnnotation(&meta, membership.AnnotationRecordUID, string(m.UID))
	err = c.Create(ctx, &corev1.Namespace{ObjectMeta: meta}, kube.FieldOwner)
	if apierrors.IsAlreadyExists(err) {
		state, namespace, err := m.ObserveNamespace(ctx, live)
		if err != nil || state != NamespaceInherited {
			return state, false, err
		}
		return NamespaceOurs, false, m.adopt(ctx, c, namespace)
	}
	if err != nil {
		return "", false, fmt.Errorf("creating namespace %s: %w", m.Namespace, err)
	}
	return NamespaceOurs, true, nil
}

// Taken returns a message about a namespace of another owner, with the cause and the remedy. About
// a Cluster in another workspace the message reveals nothing, not even the name of the workspace.
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
		return fmt.Sprintf("namespace %s exists and was not created for this %s: delete it, or delete the %s and create it under another name",
			m.Namespace, kind, kind)
	case holder.Namespace == m.Workspace:
		return fmt.Sprintf("namespace %s is the member namespace of Cluster %s: delete this Cluster and create it under another name",
			m.Namespace, holder)
	}
	return fmt.Sprintf("namespace %s is the member namespace of a Cluster in another workspace: delete this Cluster and create it under "+
		"another name", m.Namespace)
}

// proveRecord returns an error if the membership object is gone.
func (m Member) proveRecord(ctx context.Context, live client.Reader) error {
	if m.Proven {
		return nil
	}
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

// adopt marks a namespace created by KubeFleet's hub, or by a hub of an earlier version, for this
// membership object. It fails if the namespace has changed since it was read.
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

// Placed returns the Works and BundleDeployments of a member by kind and name.
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
