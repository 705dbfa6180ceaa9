// Package controller holds the common parts of the hub's controllers: their dependencies, the
// mapping of events to requests, and the handling of conflicts. It reads and writes nothing itself.
package controller

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/members/liveness"
	"github.com/muster-fleet/muster/internal/hub/runtime/identity"
	"github.com/muster-fleet/muster/internal/hub/runtime/notify"
	"github.com/muster-fleet/muster/internal/hub/runtime/servedkinds"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/kube"
)

// Deps holds the dependencies of every controller.
type Deps struct {
	// Client reads from the cache, for most kinds only metadata (see cache.go of package server), and
	// writes.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Clock is the clock of the API server.
	Clock    clock.PassiveClock
	Recorder events.EventRecorder
	// Notify sends changes of members to the receivers in the settings.
	Notify *notify.Notifier
	// Config holds the settings of the hub's chart.
	Config   *settings.Controller
	Liveness *liveness.Tracker
	// GrantContents lets the account of a member namespace read Contents. The caller has verified that
	// the hub owns the namespace.
	GrantContents func(ctx context.Context, namespace string, uid types.UID) error
	// WithdrawContents takes this right away, and makes GrantContents ineffective until
	// ReadmitContents.
	WithdrawContents func(ctx context.Context, namespace string) error
	ReadmitContents  func(ctx context.Context, namespace string, uid types.UID) error
	Kinds            *servedkinds.Kinds
	Workspaces       *Workspaces
	// Identity has the term of the hub. Nil in tests without one.
	Identity *identity.Keeper
	// Joins delays work after joins while many members join.
	Joins *Joins
	// Offers lets the controller of a member write the first conditions of other controllers.
	Offers *Offers
	// SystemNamespace is the hub's own namespace.
	SystemNamespace string
}

// Workers returns the options of a controller with the given number of concurrent reconciles.
func Workers(number int) controller.Options {
	return controller.Options{MaxConcurrentReconciles: number}
}

// Queue accepts requests.
type Queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// On returns a handler of all events of a kind. For a new object before is nil; for a deleted
// object after is nil. An event from a channel has the same object twice.
func On[T client.Object](handle func(ctx context.Context, before, after T, q Queue)) handler.EventHandler {
	var none T
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q Queue) { handle(ctx, none, e.Object.(T), q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q Queue) {
			handle(ctx, e.ObjectOld.(T), e.ObjectNew.(T), q)
		},
		DeleteFunc:  func(ctx context.Context, e event.DeleteEvent, q Queue) { handle(ctx, e.Object.(T), none, q) },
		GenericFunc: func(ctx context.Context, e event.GenericEvent, q Queue) { handle(ctx, e.Object.(T), e.Object.(T), q) },
	}
}

// OnDeleted returns a handler of deletions only.
func OnDeleted(h handler.EventHandler) handler.EventHandler {
	return handler.Funcs{DeleteFunc: h.Delete}
}

// SkipInitial returns the handler without the creations of objects present when its informer began.
// Use it for kinds besides the reconciled kind, because a starting controller reconciles all
// objects of its own kind anyway.
func SkipInitial(h handler.EventHandler) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q Queue) {
			if !e.IsInInitialList {
				h.Create(ctx, e, q)
			}
		},
		UpdateFunc: h.Update, DeleteFunc: h.Delete, GenericFunc: h.Generic,
	}
}

// Requests returns a request for each object.
func Requests[T client.Object](objects ...T) []reconcile.Request {
	requests := make([]reconcile.Request, len(objects))
	for i, o := range objects {
		requests[i].NamespacedName = client.ObjectKeyFromObject(o)
	}
	return requests
}

// All returns requests for all selected objects of a kind in the cache. Use it for an event about
// each of them, such as a change of the settings.
func All(reader client.Reader, list client.ObjectList, options ...client.ListOption) handler.MapFunc {
	return func(ctx context.Context, _ client.Object) []reconcile.Request {
		list := list.DeepCopyObject().(client.ObjectList)
		if err := reader.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Failed to list the objects to reconcile again")
			return nil
		}
		var requests []reconcile.Request
		_ = meta.EachListItem(list, func(o runtime.Object) error { // the function returns no error
			requests = append(requests, Requests(o.(client.Object))...)
			return nil
		})
		return requests
	}
}

const (
	// afterConflict is the usual time until a cache shows the write of another client. It doubles with
	// each further conflict.
	afterConflict = 200 * time.Millisecond
	// quietConflicts in a row are no failure. RetryConflicts logs the next ones.
	quietConflicts = 5
	// conflictCap is the longest pause between retries after conflicts. The cache of a restored API
	// server stays behind until it is listed again.
	conflictCap = time.Minute
)

// RetryConflicts returns a reconciler with special treatment of conflicts. Another client wrote the
// object after the cache showed it, so the request is requeued, later with each further conflict. A
// returned error would start the pauses of the controller's queue, with the shortest one. If the
// API server refuses a status, RetryConflicts emits an Event on the object. Otherwise only the log
// would report the outdated status.
func RetryConflicts(recorder events.EventRecorder, r reconcile.Reconciler) reconcile.Reconciler {
	conflicts := workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](afterConflict, conflictCap)
	return reconcile.Func(func(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
		result, err := r.Reconcile(ctx, request)
		if !apierrors.IsConflict(err) {
			conflicts.Forget(request)
			var refused *kube.StatusError
			if errors.As(err, &refused) && refused.Lasts() {
				recorder.Eventf(refused.Object, nil, corev1.EventTypeWarning, reasons.StatusNotWritten, "Report", "the status is out of date: %v",
					refused)
			}
			return result, err
		}
		pause := conflicts.When(request)
		if conflicts.NumRequeues(request) > quietConflicts {
			ctrl.LoggerFrom(ctx).Error(err, "Repeated conflicts delay the reconciliation", "retryAfter", pause)
		}
		return ctrl.Result{RequeueAfter: pause}, nil
	})
}
