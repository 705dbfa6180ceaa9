// Package registration decides on ClusterRegistrations and answers those that it grants.
//
// It owns the status of ClusterRegistrations, the objects of an answer (the right to read it and, for upstream agents, the Secret),
// the creation of Clusters that no admin predefined, and the replacement of a member's identity. Its invariants: a request is
// granted once; the right to read an answer is there before the answer; a credential exists only after everything it may do.
package registration

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/config"
	"github.com/muster-fleet/muster/internal/hub/membership"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	indexClientID   = "registration.clientID"
	indexCluster    = "registration.clusterName"
	indexTokenOwner = "registration.tokenAccount"
	// workers is how many requests are handled at once: enough to keep the API server busy while each waits for it.
	workers = 16
)

// Deps is what the controller needs.
type Deps struct {
	// Client reads requests, Clusters and tokens, and the metadata of everything managed, from the cache.
	Client client.Client
	// Live reads what is not cached.
	Live     client.Reader
	Clock    clock.PassiveClock
	Recorder events.EventRecorder
	Config   *config.Controller
	// Heartbeat returns the period that a member which joins now should beat with.
	Heartbeat func() time.Duration
	// Hub returns where the agent of a Cluster should reach the hub.
	Hub func(*fleet.Cluster) *clusterv1beta1.HubAddress
	// SystemNamespace is the hub's own.
	SystemNamespace string
}

// Controller reconciles ClusterRegistrations.
type Controller struct {
	Deps
	// proved holds the Clusters whose beat has moved since their newest request was granted. What a restart forgets is made up
	// for by the next beat, or by answerLife.
	proved sync.Map
	// written keeps requests from being granted twice.
	written kube.Written
	// readable holds the UIDs of requests whose reading rights were written, until the cache has them.
	readable sync.Map
}

// New returns a controller.
func New(deps Deps) *Controller {
	return &Controller{Deps: deps, written: kube.Written{Clock: deps.Clock}}
}

// Register adds the controller to the manager.
func (c *Controller) Register(ctx context.Context, mgr ctrl.Manager) error {
	indexer := mgr.GetFieldIndexer()
	for name, value := range map[string]func(*fleet.ClusterRegistration) string{
		indexClientID: func(r *fleet.ClusterRegistration) string { return r.Spec.ClientID },
		indexCluster:  func(r *fleet.ClusterRegistration) string { return r.Status.ClusterName },
	} {
		if err := indexer.IndexField(ctx, &fleet.ClusterRegistration{}, name, func(o client.Object) []string {
			return []string{value(o.(*fleet.ClusterRegistration))}
		}); err != nil {
			return err
		}
	}
	if err := indexer.IndexField(ctx, &fleet.Cluster{}, indexClientID, func(o client.Object) []string {
		return []string{membership.ClientID(o.(*fleet.Cluster))}
	}); err != nil {
		return err
	}
	if err := indexer.IndexField(ctx, &fleet.ClusterRegistrationToken{}, indexTokenOwner, tokenAccountOf); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).Named("registration").
		For(&fleet.ClusterRegistration{}).
		Watches(&fleet.Cluster{}, c.onCluster()).
		Watches(&fleet.ClusterRegistrationToken{}, handler.Funcs{DeleteFunc: c.onTokenDeleted}).
		WatchesMetadata(&corev1.Secret{}, c.onMember()).
		WatchesMetadata(&corev1.Namespace{}, c.onMember()).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(c)
}

// Reconcile brings one request forward.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var r fleet.ClusterRegistration
	if err := c.Client.Get(ctx, request.NamespacedName, &r); apierrors.IsNotFound(err) {
		return ctrl.Result{}, c.deleteOrphans(ctx, request.NamespacedName)
	} else if err != nil {
		return ctrl.Result{}, err
	}
	if r.DeletionTimestamp != nil || r.Labels[fleet.LabelClusterManagement] != "" {
		return ctrl.Result{}, nil
	}
	if wait := c.written.Await(&r); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil // the cache wakes it earlier
	}
	if r.Status.Granted {
		c.readable.Delete(r.UID)
		return c.tend(ctx, &r)
	}
	seen, err := c.observe(ctx, &r)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := c.makeReadable(ctx, &r, seen); err != nil {
		return ctrl.Result{}, err
	}
	now := c.Clock.Now()
	decided := decide(seen.observed, now)
	var answer []byte
	switch decided.action {
	case remove:
		return ctrl.Result{}, c.remove(ctx, &r)
	case createCluster:
		err = c.createCluster(ctx, &r, decided.cluster)
	case grant:
		decided, answer, err = c.grant(ctx, &r, seen, decided)
	case nothing:
	}
	if err != nil && !apierrors.IsConflict(err) {
		decided = failed(decided, seen.created, err, now)
	}
	if !decided.quiet && !apierrors.IsConflict(err) {
		err = errors.Join(err, c.report(ctx, &r, decided, answer))
	}
	if err != nil || decided.wake.IsZero() {
		return ctrl.Result{}, err
	}
	return kube.At(decided.wake, now), nil
}

// remove deletes a request that has had its time or its day, and before it whatever answers it.
func (c *Controller) remove(ctx context.Context, r *fleet.ClusterRegistration) error {
	if err := c.withdrawAnswer(ctx, r); err != nil {
		return err
	}
	err := c.Client.Delete(ctx, r, client.Preconditions{UID: &r.UID})
	if apierrors.IsConflict(err) { // another object of the same name by now
		return nil
	}
	return client.IgnoreNotFound(err)
}

// wake enqueues the requests for a Cluster: those that wait, or also those that were granted.
func (c *Controller) wake(ctx context.Context, cluster *fleet.Cluster, granted bool, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	var list fleet.ClusterRegistrationList
	if err := c.Client.List(ctx, &list, client.InNamespace(cluster.Namespace), client.MatchingFields{indexClientID: membership.ClientID(cluster)}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the requests of a Cluster", "cluster", client.ObjectKeyFromObject(cluster))
		return
	}
	for i := range list.Items {
		if r := &list.Items[i]; granted || !r.Status.Granted {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(r)})
		}
	}
}

// onCluster wakes the requests that wait for a Cluster, and the granted one whose agent has just beaten.
func (c *Controller) onCluster() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			c.wake(ctx, e.Object.(*fleet.Cluster), false, q)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			before, after := e.ObjectOld.(*fleet.Cluster), e.ObjectNew.(*fleet.Cluster)
			beaten := !after.Status.Agent.LastSeen.Equal(&before.Status.Agent.LastSeen) && !after.Status.Agent.LastSeen.IsZero()
			if beaten {
				c.proved.Store(client.ObjectKeyFromObject(after), true)
			}
			c.wake(ctx, after, beaten, q)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			c.proved.Delete(client.ObjectKeyFromObject(e.Object))
			c.wake(ctx, e.Object.(*fleet.Cluster), true, q)
		},
	}
}

// onTokenDeleted wakes the requests that were made with the token and wait: they are denied.
func (c *Controller) onTokenDeleted(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	var list fleet.ClusterRegistrationList
	if err := c.Client.List(ctx, &list, client.InNamespace(e.Object.GetNamespace()), client.MatchingLabels{fleet.LabelRegistrationToken: e.Object.GetName()}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the requests of a token", "token", client.ObjectKeyFromObject(e.Object))
		return
	}
	for i := range list.Items {
		if r := &list.Items[i]; !r.Status.Granted {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(r)})
		}
	}
}

// onMember wakes the requests that wait for something of a member: its namespace, or the token of its account.
func (c *Controller) onMember() handler.EventHandler {
	wake := func(ctx context.Context, o client.Object, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		if namespace, name, ok := strings.Cut(o.GetAnnotations()[annotationRequest], "/"); ok { // an answer; its request may be gone
			q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
			return
		}
		key, ok := membership.RecordOf(o)
		if !ok {
			return
		}
		var cluster fleet.Cluster
		if err := c.Client.Get(ctx, key, &cluster); err == nil { // a Cluster that is gone waits for nothing
			c.wake(ctx, &cluster, false, q)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wake(ctx, e.Object, q)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wake(ctx, e.ObjectNew, q)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wake(ctx, e.Object, q)
		},
	}
}
