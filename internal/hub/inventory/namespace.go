package inventory

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	inventory "github.com/muster-fleet/muster/api/inventory/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

// namespaces keeps the namespace of the inventory. One that the hub did not make is used as it is and never changed.
type namespaces struct{ Deps }

func (n *namespaces) register(mgr ctrl.Manager) error {
	atStart := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(n.request())
		return nil
	})
	current := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{n.request()} })
	return ctrl.NewControllerManagedBy(mgr).Named("inventory-namespace").
		WatchesMetadata(&corev1.Namespace{}, &handler.EnqueueRequestForObject{}).
		WatchesRawSource(source.Channel(n.Config.Subscribe(), current)).
		WatchesRawSource(atStart).
		Complete(n)
}

func (n *namespaces) request() reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: n.Config.Current().InventoryNamespace}}
}

// Reconcile looks after the namespace, if it is the one in force.
func (n *namespaces) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	return ctrl.Result{}, n.ensure(ctx, request.Name)
}

// ensure makes the namespace and keeps its labels.
func (n *namespaces) ensure(ctx context.Context, name string) error {
	settings := n.Config.Current()
	if name == "" || name != settings.InventoryNamespace {
		return nil
	}
	wanted := map[string]string{
		inventory.LabelClusterSet: settings.InventoryClusterSet, inventory.LabelClusterSetOfKEP: settings.InventoryClusterSet,
	}
	namespace := kube.Metadata(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := n.Client.Get(ctx, types.NamespacedName{Name: name}, namespace) // the cache knows the hub's own only
	switch {
	case apierrors.IsNotFound(err):
		return n.create(ctx, name, wanted)
	case err != nil:
		return fmt.Errorf("reading namespace %s: %w", name, err)
	case namespace.DeletionTimestamp != nil, has(namespace, wanted):
		return nil
	}
	before := namespace.DeepCopy()
	maps.Copy(namespace.Labels, wanted)
	if err := n.Client.Patch(ctx, namespace, client.MergeFrom(before), kube.FieldOwner); err != nil {
		return fmt.Errorf("labelling namespace %s: %w", name, err)
	}
	return nil
}

func (n *namespaces) create(ctx context.Context, name string, wanted map[string]string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: maps.Clone(wanted)}}
	namespace.Labels[fleet.LabelManaged] = "true"
	err := n.Client.Create(ctx, namespace, kube.FieldOwner)
	if err == nil {
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating namespace %s: %w", name, err)
	}
	have := kube.Metadata(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := n.Live.Get(ctx, types.NamespacedName{Name: name}, have); err != nil {
		return fmt.Errorf("reading namespace %s: %w", name, err)
	}
	if !has(have, wanted) && have.Labels[fleet.LabelManaged] == "" {
		set := wanted[inventory.LabelClusterSet]
		n.Recorder.Eventf(have, nil, corev1.EventTypeWarning, "ClusterSetMissing", "ShowInInventory",
			"the ClusterProfiles of the fleet are here, and the labels that say of which ClusterSet are not: kubectl label namespace %s %s=%s %s=%s",
			name, inventory.LabelClusterSet, set, inventory.LabelClusterSetOfKEP, set)
	}
	return nil
}

func has(o client.Object, wanted map[string]string) bool {
	for key, value := range wanted {
		if o.GetLabels()[key] != value {
			return false
		}
	}
	return true
}
