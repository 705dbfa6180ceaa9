// Package membership is what both doors share behind the record: the member namespace, the identity that may act there and
// nowhere else, and the report.
//
// It owns everything in a member namespace but the report's status and the beats. Its invariant: a namespace that the hub did not
// make for this very record is never used, changed or deleted.
package membership

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
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// Member is one member as seen from its record.
type Member struct {
	// Name and Workspace are those of the record; a MemberCluster has no workspace.
	Name, Workspace string
	// UID of the record.
	UID types.UID
	// Namespace is the member namespace.
	Namespace string
}

// OfCluster returns the member behind a Cluster.
func OfCluster(cluster *fleet.Cluster) Member {
	return Member{
		Name: cluster.Name, Workspace: cluster.Namespace, UID: cluster.UID,
		Namespace: naming.MemberNamespace(cluster.Namespace, cluster.Name),
	}
}

// ClientID is what an agent must present to become a Cluster: what the spec says, else, if the hub itself installs the agent, the UID of
// the record, so that nothing is written into a spec that is somebody else's. Without either no agent matches.
func ClientID(cluster *fleet.Cluster) string {
	if cluster.Spec.ClientID == "" && cluster.Spec.KubeConfigSecret != "" {
		return string(cluster.UID)
	}
	return cluster.Spec.ClientID
}

// OfMemberCluster returns the member behind a MemberCluster.
func OfMemberCluster(mc *clusterv1beta1.MemberCluster) Member {
	return Member{Name: mc.Name, UID: mc.UID, Namespace: naming.MemberClusterNamespace(mc.Name)}
}

// MemberClusterOf leads from the name of a member namespace back to the name of the MemberCluster.
func MemberClusterOf(namespace string) (string, bool) {
	return strings.CutPrefix(namespace, naming.MemberClusterNamespace(""))
}

// RecordOf leads from an object in a member namespace, or from the namespace itself, back to the Cluster. What belongs to a
// MemberCluster has that as its owner.
func RecordOf(o client.Object) (types.NamespacedName, bool) {
	key := types.NamespacedName{
		Namespace: o.GetAnnotations()[fleet.AnnotationClusterNamespace],
		Name:      o.GetAnnotations()[fleet.LabelCluster],
	}
	return key, key.Name != "" && key.Namespace != ""
}

// meta is the metadata of everything that belongs to a member.
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
	NamespaceAbsent      NamespaceState = "Absent"
	NamespaceOurs        NamespaceState = "Ours"
	NamespaceTaken       NamespaceState = "Taken"
	NamespaceTerminating NamespaceState = "Terminating"
)

// ObserveNamespace looks at the member namespace through the reader.
func (m Member) ObserveNamespace(ctx context.Context, reader client.Reader) (NamespaceState, *metav1.PartialObjectMetadata, error) {
	namespace := kube.Metadata(corev1.SchemeGroupVersion.WithKind("Namespace"))
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
	case !m.owns(namespace):
		return NamespaceTaken, namespace, nil
	case namespace.DeletionTimestamp != nil:
		return NamespaceTerminating, namespace, nil
	}
	return NamespaceOurs, namespace, nil
}

// predecessor says whether the namespace is that of a MemberCluster of the same name which was deleted: it is on its way out.
func (m Member) predecessor(namespace client.Object) bool {
	owner := metav1.GetControllerOf(namespace)
	return m.Workspace == "" && owner != nil && owner.Kind == "MemberCluster" && owner.Name == m.Name && owner.UID != m.UID
}

func (m Member) owns(o client.Object) bool {
	if o.GetLabels()[fleet.LabelManaged] != "true" {
		return false
	}
	if m.Workspace == "" {
		owner := metav1.GetControllerOf(o)
		return owner != nil && owner.UID == m.UID
	}
	key, ok := RecordOf(o)
	return ok && key == types.NamespacedName{Namespace: m.Workspace, Name: m.Name}
}

// CreateNamespace makes the member namespace and says what stands there afterwards. It never adopts one that exists.
func (m Member) CreateNamespace(ctx context.Context, c client.Client, live client.Reader) (NamespaceState, error) {
	err := c.Create(ctx, &corev1.Namespace{ObjectMeta: m.meta("", m.Namespace)}, kube.FieldOwner)
	if apierrors.IsAlreadyExists(err) {
		state, _, err := m.ObserveNamespace(ctx, live)
		return state, err
	}
	if err != nil {
		return "", fmt.Errorf("creating namespace %s: %w", m.Namespace, err)
	}
	return NamespaceOurs, nil
}

// DeleteNamespace starts the removal of the member namespace, if it is the member's.
func (m Member) DeleteNamespace(ctx context.Context, c client.Client, live client.Reader) error {
	state, namespace, err := m.ObserveNamespace(ctx, live)
	if err != nil || state != NamespaceOurs {
		return err
	}
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace.Name}}
	if err := c.Delete(ctx, object, client.Preconditions{UID: &namespace.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting namespace %s: %w", namespace.Name, err)
	}
	return nil
}

// Placed names what is placed on a member, in words.
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

// ReleaseWorks takes the finalizers off the works of a member: nobody is left who could, and they would hold the namespace for ever. They
// are deleted before, because an agent whose access has not quite ended may put another on one that is not, and after the namespace, by
// which an agent knows that nothing is to be removed.
func (m Member) ReleaseWorks(ctx context.Context, c client.Client, live client.Reader) error {
	var works placement.WorkList
	if err := live.List(ctx, &works, client.InNamespace(m.Namespace)); err != nil && !kube.NotServed(err) {
		return fmt.Errorf("listing the works of %s: %w", m.Namespace, err)
	}
	for i := range works.Items {
		work := &works.Items[i]
		if err := c.Delete(ctx, work, client.Preconditions{UID: &work.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting Work %s/%s: %w", work.Namespace, work.Name, err)
		}
		free := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := c.Patch(ctx, work, free, kube.FieldOwner); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("releasing Work %s/%s: %w", work.Namespace, work.Name, err)
		}
	}
	return nil
}
