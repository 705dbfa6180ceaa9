// Package token gives a ClusterRegistrationToken an identity with the single right to create
// registration requests, and the values.yaml with its credential for new clusters.
//
// Token owns the ServiceAccount, Role, RoleBinding and Secrets of a token, all in the workspace,
// and is the only writer of the token's status. Its invariant: a token with a TTL hands out only
// credentials with the same expiry, even while no hub is running. (Kubernetes issues none shorter
// than ten minutes; for a shorter TTL the hub deletes the account on time.)
package token

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/credentials/longlived"
	"github.com/muster-fleet/muster/internal/hub/joining/expression"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// indexToken finds granted registrations by their token.
	indexToken = "token.registrationToken"
	// countDelay separates two counts of the registrations of a token.
	countDelay = 10 * time.Second
	// workers is the number of concurrent reconciles: each token takes a dozen requests one after the
	// other, and every import needs a token.
	workers = 5
)

// Controller reconciles ClusterRegistrationTokens.
type Controller struct {
	controller.Deps
	expected kube.Expectations
	// expressions holds the expressions of tokens with approval CEL.
	expressions *expression.Cache
	lasting     *longlived.Issuer
	// known holds a known per token, by key.
	known kube.Memory[types.NamespacedName, *known]
}

// New returns a controller. It fills the cache of expressions.
func New(deps controller.Deps, expressions *expression.Cache, issuer *longlived.Issuer) *Controller {
	return &Controller{Deps: deps, expected: kube.Expectations{Clock: deps.Clock}, expressions: expressions, lasting: issuer}
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
		Watches(&fleet.ClusterRegistration{}, controller.On(onRegistration)).
		WatchesRawSource(source.Channel(c.Config.Subscribe(),
			handler.EnqueueRequestsFromMapFunc(controller.All(c.Client, &fleet.ClusterRegistrationTokenList{})))).
		WithOptions(controller.Workers(workers)).
		Complete(controller.RetryConflicts(c.Recorder, c))
}

// Reconcile issues, renews or withdraws the credential of one token.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var token fleet.ClusterRegistrationToken
	if err := c.Client.Get(ctx, request.NamespacedName, &token); apierrors.IsNotFound(err) {
		c.expected.Forget(request.NamespacedName)
		c.expressions.Forget(request.NamespacedName)
		c.known.Forget(request.NamespacedName)
		return ctrl.Result{}, nil
	} else if err != nil {
		return ctrl.Result{}, err
	}
	if token.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	if wait := c.expected.Await(request.NamespacedName, &token); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil // the cache enqueues it earlier
	}
	now := c.Clock.Now()
	o, err := c.observe(ctx, &token, now)
	if err != nil {
		return ctrl.Result{}, err
	}
	decided := decide(o.observed, now)
	switch decided.state {
	case removed:
		return ctrl.Result{}, client.IgnoreNotFound(c.Client.Delete(ctx, &token, client.Preconditions{UID: &token.UID}))
	case expired, refused:
		err = c.withdraw(ctx, &token, o)
	case active:
		previous, pending := o.known.claims, false
		if err = c.endPrevious(ctx, &token, &o.rotation, now); err == nil {
			pending, err = c.provide(ctx, &token, &o, decided)
		}
		if err == nil && !pending {
			o.rotation.finish(previous, o.expires(), now)
		}
		if pending {
			decided.reason, decided.message = reasons.Preparing, "waiting for Kubernetes to issue the account's token. The token controller of "+
				"the hub cluster's kube-controller-manager issues it: if no token comes, check that it runs, and read its log"
		}
	case held:
		err = c.endPrevious(ctx, &token, &o.rotation, now)
	}
	if apierrors.IsConflict(err) {
		return ctrl.Result{}, err
	}
	if err != nil {
		decided.reason, decided.message = reasons.Failed, err.Error()+"; the hub tries again"
	}
	if err := errors.Join(err, c.report(ctx, &token, o.observed, decided, now)); err != nil || decided.wake.IsZero() {
		return ctrl.Result{}, err
	}
	return kube.At(decided.wake, now), nil
}

// toToken maps an object of a token to the token.
func toToken(_ context.Context, o client.Object) []reconcile.Request {
	name := o.GetAnnotations()[annotationToken]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}}
}

// onRegistration enqueues the token of a registration after its grant, or after the deletion of a
// granted one. The delay combines hundreds of joins into one count.
func onRegistration(_ context.Context, before, after *fleet.ClusterRegistration, q controller.Queue) {
	r := after
	switch {
	case after == nil:
		r = before
	case before != nil && before.Status.Granted:
		return
	}
	if name := r.Labels[fleet.LabelRegistrationToken]; name != "" && r.Status.Granted {
		q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: r.Namespace, Name: name}}, countDelay)
	}
}
