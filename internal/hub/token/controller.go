// Package token answers a ClusterRegistrationToken with an identity that may only ask to register, and with the values.yaml that
// carries its credential to new clusters.
//
// It owns the ServiceAccount, Role, RoleBinding and Secrets of a token, all in the workspace, and is the only writer of the token's
// status. Its invariant: a token with a TTL hands out only credentials that end with it by themselves, even while no hub is
// running. (Kubernetes issues none shorter than ten minutes; for a shorter TTL the hub ends the account on time.)
package token

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/config"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// indexToken finds granted registrations by the token they were made with.
	indexToken = "token.registrationToken"
	// countDelay coalesces the counting of registrations: one status write per token in that time, however many join.
	countDelay = 10 * time.Second
)

// Controller reconciles ClusterRegistrationTokens.
type Controller struct {
	client          client.Client
	live            client.Reader
	clock           clock.PassiveClock
	config          *config.Controller
	systemNamespace string
	written         kube.Written
}

// Deps is what the controller needs.
type Deps struct {
	// Client reads tokens and registrations from the cache.
	Client client.Client
	// Live reads what is not cached: accounts and Secrets.
	Live            client.Reader
	Clock           clock.PassiveClock
	Config          *config.Controller
	SystemNamespace string
}

// New returns a controller.
func New(deps Deps) *Controller {
	return &Controller{client: deps.Client, live: deps.Live, clock: deps.Clock, config: deps.Config, systemNamespace: deps.SystemNamespace,
		written: kube.Written{Clock: deps.Clock}}
}

// Register adds the controller to the manager.
func (c *Controller) Register(ctx context.Context, mgr ctrl.Manager) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &fleet.ClusterRegistration{}, indexToken, func(o client.Object) []string {
		r := o.(*fleet.ClusterRegistration)
		if name := r.Labels[fleet.LabelRegistrationToken]; name != "" && r.Status.Granted {
			return []string{name}
		}
		return nil
	}); err != nil {
		return err
	}
	owner := handler.EnqueueRequestsFromMapFunc(toToken)
	return ctrl.NewControllerManagedBy(mgr).Named("token").
		For(&fleet.ClusterRegistrationToken{}).
		WatchesMetadata(&corev1.ServiceAccount{}, owner).
		WatchesMetadata(&corev1.Secret{}, owner).
		WatchesMetadata(&rbacv1.RoleBinding{}, owner).
		WatchesMetadata(&rbacv1.Role{}, owner).
		Watches(&fleet.ClusterRegistration{}, countLater).
		WatchesRawSource(source.Channel(c.config.Subscribe(), handler.EnqueueRequestsFromMapFunc(c.allTokens))).
		Complete(c)
}

// Reconcile brings one token and what belongs to it in line.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var token fleet.ClusterRegistrationToken
	if err := c.client.Get(ctx, request.NamespacedName, &token); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if token.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	if wait := c.written.Await(&token); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil // the cache wakes it earlier
	}
	seen, err := c.observe(ctx, &token)
	if err != nil {
		return ctrl.Result{}, err
	}
	now := c.clock.Now()
	decided := decide(seen.observed, now)
	switch decided.state {
	case removed:
		return ctrl.Result{}, client.IgnoreNotFound(c.client.Delete(ctx, &token, client.Preconditions{UID: &token.UID}))
	case expired, refused:
		err = c.withdraw(ctx, &token, seen)
	case active:
		var pending bool
		pending, err = c.provide(ctx, &token, seen, decided)
		if pending {
			decided.reason, decided.message = "Preparing", "waiting for Kubernetes to fill in the account's token: that does the token controller of the hub cluster's kube-controller-manager; if it does not come, see that it runs and what it logs"
		}
	case held:
	}
	if apierrors.IsConflict(err) {
		return ctrl.Result{}, err
	}
	if err != nil {
		decided.reason, decided.message = "Failed", err.Error()+"; the hub tries again"
	}
	if err := errors.Join(err, c.report(ctx, &token, decided, now)); err != nil || decided.wake.IsZero() {
		return ctrl.Result{}, err
	}
	return kube.At(decided.wake, now), nil
}

func toToken(_ context.Context, o client.Object) []reconcile.Request {
	name := o.GetAnnotations()[annotationToken]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}}
}

func (c *Controller) allTokens(ctx context.Context, _ client.Object) []reconcile.Request {
	var list fleet.ClusterRegistrationTokenList
	if err := c.client.List(ctx, &list); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing tokens after a change of settings")
		return nil
	}
	requests := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}

// countLater wakes the token of a registration that was granted or that is gone, but not for each of hundreds.
var countLater = handler.Funcs{
	CreateFunc: func(_ context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		enqueueCount(e.Object, q)
	},
	UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		if !e.ObjectOld.(*fleet.ClusterRegistration).Status.Granted {
			enqueueCount(e.ObjectNew, q)
		}
	},
	DeleteFunc: func(_ context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		enqueueCount(e.Object, q)
	},
}

func enqueueCount(o client.Object, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	r := o.(*fleet.ClusterRegistration)
	if name := r.Labels[fleet.LabelRegistrationToken]; name != "" && r.Status.Granted {
		q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: r.Namespace, Name: name}}, countDelay)
	}
}

func expiryOf(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t.Truncate(time.Second)}
}
