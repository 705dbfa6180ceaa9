package membernamespace

import (
	"context"
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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

// Release removes the finalizers of the hub's objects in a terminating member namespace, because no
// agent is left to do so. The namespace would otherwise stay forever. It leaves alone objects of
// other creators. It does nothing in a namespace that is not terminating, such as the namespace of
// a former membership object of the same name. An agent with access to it would take a deletion for
// a request to remove the workload.
func (m Member) Release(ctx context.Context, c client.Client, live client.Reader) error {
	namespace := kube.CoreMetadata("Namespace")
	if err := live.Get(ctx, types.NamespacedName{Name: m.Namespace}, namespace); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading namespace %s: %w", m.Namespace, err)
	}
	if namespace.DeletionTimestamp == nil {
		return nil
	}
	// A member may write the metadata of these two, so only their names prove their owner.
	lease, report := kube.Metadata(coordinationv1.SchemeGroupVersion.WithKind("Lease")),
		kube.Metadata(clusterv1beta1.GroupVersion.WithKind("InternalMemberCluster"))
	lease.Namespace, lease.Name = m.Namespace, naming.HeartbeatLease
	report.Namespace, report.Name = m.Namespace, m.Name
	err := errors.Join(release(ctx, c, lease), release(ctx, c, report))
	every := func(*metav1.PartialObjectMetadata) bool { return true }
	err = errors.Join(err, m.releaseAll(ctx, c, live, placement.GroupVersion.WithKind("Work"), every))
	held := func(o *metav1.PartialObjectMetadata) bool {
		return len(o.Finalizers) > 0 && o.Labels[fleet.LabelManaged] == "true"
	}
	for _, kind := range []schema.GroupVersionKind{
		fleet.GroupVersion.WithKind("BundleDeployment"), corev1.SchemeGroupVersion.WithKind("Secret"),
		corev1.SchemeGroupVersion.WithKind("ServiceAccount"),
		rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), rbacv1.SchemeGroupVersion.WithKind("Role"),
	} {
		err = errors.Join(err, m.releaseAll(ctx, c, live, kind, held))
	}
	return err
}

// releaseAll releases the objects of a kind selected by the function.
func (m Member) releaseAll(ctx context.Context, c client.Client, live client.Reader, kind schema.GroupVersionKind,
	which func(*metav1.PartialObjectMetadata) bool) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := live.List(ctx, list, client.InNamespace(m.Namespace)); err != nil && !kube.NotServed(err) {
		return fmt.Errorf("listing the %ss of %s: %w", kind.Kind, m.Namespace, err)
	}
	var all []error
	for i := range list.Items {
		if object := &list.Items[i]; which(object) {
			object.SetGroupVersionKind(kind)
			all = append(all, release(ctx, c, object))
		}
	}
	return errors.Join(all...)
}

// release deletes an object before it removes the finalizers. Otherwise an agent with remaining
// access could add another finalizer.
func release(ctx context.Context, c client.Client, object *metav1.PartialObjectMetadata) error {
	var only []client.DeleteOption
	if object.UID != "" {
		only = append(only, client.Preconditions{UID: &object.UID})
	}
	switch err := c.Delete(ctx, object, only...); {
	case apierrors.IsNotFound(err), kube.NotServed(err):
		return nil
	case err != nil:
		return fmt.Errorf("deleting %s %s/%s: %w", object.Kind, object.Namespace, object.Name, err)
	}
	free := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	if err := c.Patch(ctx, object, free, kube.FieldOwner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the finalizers of %s %s/%s: %w", object.Kind, object.Namespace, object.Name, err)
	}
	return nil
}
