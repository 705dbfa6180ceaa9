package audit

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/muster-fleet/muster/api/muster/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
)

// Controller deletes AuditEntries by age and number. A request is the name of a namespace.
type Controller struct {
	controller.Deps
}

// New returns the controller.
func New(deps controller.Deps) *Controller { return &Controller{deps} }

// Register adds the controller to the manager. The manager's API server must serve AuditEntries.
func (c *Controller) Register(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("audit").
		Watches(&v1alpha1.AuditEntry{}, controller.On(onEntry)).
		WatchesRawSource(source.Channel(c.Config.Subscribe(), controller.On(c.onSettings))).
		Complete(c)
}

// gather delays the check of a namespace with a new entry. Many concurrent joins then cost one list
// of all entries a second.
const gather = time.Second

// onEntry enqueues the namespace of a new entry. A deleted entry needs no check.
func onEntry(_ context.Context, before, after *v1alpha1.AuditEntry, q controller.Queue) {
	if before == nil {
		q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: after.Namespace}}, gather)
	}
}

// onSettings enqueues every namespace with entries, because the limits have changed.
func (c *Controller) onSettings(ctx context.Context, _, _ client.Object, q controller.Queue) {
	var list v1alpha1.AuditEntryList
	if err := c.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list the AuditEntries after a change of the settings")
		return
	}
	for i := range list.Items {
		q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: list.Items[i].Namespace}})
	}
}

// Reconcile deletes the entries of one namespace above the limits of age and number.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if c.Config.Current().Unknown {
		return ctrl.Result{}, nil // the settings may keep more; their event enqueues the namespace again
	}
	var list v1alpha1.AuditEntryList
	if err := c.Client.List(ctx, &list, client.InNamespace(request.Name), client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing the AuditEntries of %s: %w", request.Name, err)
	}
	entries := make([]*v1alpha1.AuditEntry, len(list.Items))
	for i := range list.Items {
		entries[i] = &list.Items[i]
	}
	now := c.Clock.Now()
	remove, next := expired(entries, c.Config.Current().Audit, now)
	for _, entry := range remove {
		// The cache may still show deleted entries for a moment.
		if err := kube.DeleteByUID(ctx, c.Client, entry); err != nil && !kube.NotServed(err) {
			return ctrl.Result{}, err
		}
	}
	if next.IsZero() {
		return ctrl.Result{}, nil
	}
	return kube.At(next, now), nil
}

// Slim drops the fields of an entry irrelevant to its deletion, before the cache stores the entry.
func Slim(entry *v1alpha1.AuditEntry) {
	entry.Labels, entry.Annotations = nil, nil
	entry.Spec = v1alpha1.AuditEntrySpec{Time: entry.Spec.Time, Reason: entry.Spec.Reason, Token: entry.Spec.Token}
}
