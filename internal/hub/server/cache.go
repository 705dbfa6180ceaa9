package server

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	inventoryv1alpha1 "github.com/muster-fleet/muster/api/inventory/v1alpha1"
	musterv1alpha1 "github.com/muster-fleet/muster/api/muster/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/bundles/agentbundle"
	"github.com/muster-fleet/muster/internal/hub/bundles/bundle"
	"github.com/muster-fleet/muster/internal/hub/members/audit"
	"github.com/muster-fleet/muster/internal/hub/members/inventory"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	placer "github.com/muster-fleet/muster/internal/hub/placement"
	"github.com/muster-fleet/muster/internal/hub/runtime/anyform"
	"github.com/muster-fleet/muster/internal/hub/runtime/servedkinds"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// cacheOptions keeps objects out of memory if the hub neither created them nor decides on them.
func cacheOptions(namespace string, kinds *servedkinds.Kinds) cache.Options {
	managed := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{fleet.LabelManaged: "true"})}
	return cache.Options{
		DefaultTransform: lean,
		NewInformer:      kinds.NewInformer,
		ByObject: map[client.Object]cache.ByObject{
			&fleet.ClusterRegistration{}:            {Transform: withoutAnswer},
			&fleet.Bundle{}:                         {Transform: withoutResources},
			&fleet.BundleDeployment{}:               {Transform: bundle.WithoutOptions},
			anyform.Object("GitRepo"):               {Transform: anyform.Slim},
			anyform.Object("HelmOp"):                {Transform: anyform.Slim},
			&placement.Work{}:                       {Transform: placer.Slim},
			&clusterv1beta1.InternalMemberCluster{}: {Transform: bounded},
			&corev1.Namespace{}:                     managed,
			&corev1.ServiceAccount{}:                managed,
			&corev1.Secret{}:                        managed,
			&coordinationv1.Lease{}: {
				Label: managed.Label, Field: fields.OneTermEqualSelector(metav1.ObjectNameField, naming.HeartbeatLease),
			},
			&rbacv1.Role{}:               managed,
			&rbacv1.RoleBinding{}:        managed,
			&rbacv1.ClusterRoleBinding{}: managed,
			&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{
				namespace: {FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, naming.HubConfigMap)},
			}},
		},
	}
}

// decidedOn returns the kinds, besides those with an index, needed by many controllers. Every
// replica caches them for a takeover.
func decidedOn() []client.Object {
	return []client.Object{
		&clusterv1beta1.InternalMemberCluster{}, &fleet.ClusterGroup{}, kube.CoreMetadata("Namespace"), kube.CoreMetadata("ServiceAccount"),
		kube.Metadata(rbacv1.SchemeGroupVersion.WithKind("Role")), kube.Metadata(rbacv1.SchemeGroupVersion.WithKind("RoleBinding")),
		kube.Metadata(fleet.GroupVersion.WithKind("Content")),
	}
}

// lean drops the fields unused in the hub. The cache's options cannot name these kinds, because the
// API server must serve every kind in them.
func lean(o any) (any, error) {
	switch object := o.(type) {
	case *inventoryv1alpha1.ClusterProfile:
		inventory.Lean(object)
	case *musterv1alpha1.AuditEntry:
		audit.Slim(object)
	}
	return cache.TransformStripManagedFields()(o)
}

// withoutResources keeps the resources of Bundles out of the cache, and notes for the Bundles of
// agents whether they have any.
func withoutResources(o any) (any, error) {
	if b, ok := o.(*fleet.Bundle); ok {
		agentbundle.NoteResources(b)
	}
	return bundle.WithoutResources(o)
}

// bounded keeps oversized reports out of the hub's memory, and out of all copies of them.
func bounded(o any) (any, error) {
	if report, ok := o.(*clusterv1beta1.InternalMemberCluster); ok {
		membernamespace.Bound(report)
	}
	return cache.TransformStripManagedFields()(o)
}

// withoutAnswer keeps credentials, although sealed, out of the hub's memory: nothing in the hub
// reads them. Their existence stays visible.
func withoutAnswer(o any) (any, error) {
	if r, ok := o.(*fleet.ClusterRegistration); ok && len(r.Status.Answer) > 0 {
		r.Status.Answer = []byte{0}
	}
	return cache.TransformStripManagedFields()(o)
}
