package inventory

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	inventory "github.com/muster-fleet/muster/api/inventory/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
)

// namespaces reconciles the namespaces of the inventory. The hub uses another creator's namespace
// as it is, and never changes it.
type namespaces struct{ controller.Deps }

func (n *namespaces) register(mgr ctrl.Manager) error {
	only := func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{{}} }
	atStart := source.Func(func(_ context.Context, queue controller.Queue) error {
		queue.Add(reconcile.Request{})
		return nil
	})
	isInventory := builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool {
		return slices.Contains(n.Config.Current().InventoryNamespaces(), o.GetName())
	}))
	return ctrl.NewControllerManagedBy(mgr).Named("inventory-namespace").
		WatchesMetadata(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(only), isInventory).
		WatchesRawSource(source.Channel(n.Config.Subscribe(), handler.EnqueueRequestsFromMapFunc(only))).
		WatchesRawSource(atStart).
		Complete(n)
}

// Reconcile creates or corrects all of them.
func (n *namespaces) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	var failures []error
	for _, name := range n.Config.Current().InventoryNamespaces() {
		failures = append(failures, n.ensure(ctx, name))
	}
	return ctrl.Result{}, errors.Join(failures...)
}

// ensure creates a namespace and keeps its labels.
func (n *namespaces) ensure(ctx context.Context, name string) error {
	settings := n.Config.Current()
	set := settings.InventoryClusterSet
	if settings.Unknown {
		return nil
	}
	labels := map[string]string{inventory.LabelClusterSet: set, inventory.LabelClusterSetOfKEP: set, fleet.LabelManaged: "true"}
	have := kube.CoreMetadata("Namespace")
	err := n.Client.Get(ctx, types.NamespacedName{Name: name}, have) // the cache holds only the hub's own namespaces
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading namespace %s: %w", name, err)
	case err == nil && (have.DeletionTimestamp != nil || hasLabels(have, labels)):
		return nil
	}
	if err := kube.Ensure(ctx, n.Client, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}); !kube.IsTaken(err) {
		return err
	}
	if err := n.Live.Get(ctx, types.NamespacedName{Name: name}, have); err != nil {
		return fmt.Errorf("reading namespace %s: %w", name, err)
	}
	delete(labels, fleet.LabelManaged)
	if !hasLabels(have, labels) {
		n.Recorder.Eventf(have, nil, corev1.EventTypeWarning, reasons.ClusterSetMissing, "Publish",
			"this namespace has the ClusterProfiles of the fleet, and lacks the labels of their ClusterSet: kubectl label namespace %s %s=%s %s=%s",
			name, inventory.LabelClusterSet, set, inventory.LabelClusterSetOfKEP, set)
	}
	return nil
}

func hasLabels(o client.Object, labels map[string]string) bool {
	for key, value := range labels {
		if o.GetLabels()[key] != value {
			return false
		}
	}
	return true
}
