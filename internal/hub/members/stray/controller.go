// Package stray deletes member namespaces without a Cluster or MemberCluster: a user may have
// removed its finalizer, or restored the hub without it. Otherwise the agent of such a member keeps
// its access forever, and the next membership object of the same name gets the old agent.
//
// Stray deletes the member's access objects in the namespace and in the workspace, and then the
// namespace. Its invariant: the API server itself has confirmed twice, with a pause between, that
// the membership object does not exist.
package stray

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/hub/runtime/removal"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// pause separates the first failed read of a membership object from the second one.
const pause = 30 * time.Second

// Controller reconciles member namespaces.
type Controller struct {
	controller.Deps
	// missed holds the namespaces with one failed read of their membership object, by name.
	missed kube.Memory[string, sighting]
}

// sighting is the time when the membership object of a namespace with a UID was first missing.
type sighting struct {
	namespace types.UID
	at        time.Time
}

// New returns the controller.
func New(deps controller.Deps) *Controller { return &Controller{Deps: deps} }

// Register adds the controller to the manager.
func (c *Controller) Register(mgr ctrl.Manager) error {
	ofRecord := func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: membernamespace.Of(o).Namespace}}}
	}
	appears := builder.WithPredicates(predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }})
	return ctrl.NewControllerManagedBy(mgr).Named("stray").
		WatchesMetadata(&corev1.Namespace{}, &handler.EnqueueRequestForObject{}, appears).
		Watches(&fleet.Cluster{}, controller.OnDeleted(handler.EnqueueRequestsFromMapFunc(ofRecord))).
		Watches(&clusterv1beta1.MemberCluster{}, controller.OnDeleted(handler.EnqueueRequestsFromMapFunc(ofRecord))).
		WithOptions(controller.Workers(1)).
		Complete(controller.RetryConflicts(c.Recorder, c))
}

// Reconcile deletes a member namespace without a membership object.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	namespace := kube.CoreMetadata("Namespace")
	if err := c.Client.Get(ctx, request.NamespacedName, namespace); apierrors.IsNotFound(err) {
		c.missed.Forget(request.Name)
		return ctrl.Result{}, nil
	} else if err != nil {
		return ctrl.Result{}, err
	}
	member, ok := membernamespace.StrayOf(namespace)
	if !ok || c.isHubs(request.Name) {
		return ctrl.Result{}, nil
	}
	exists, again, err := c.hasRecord(ctx, member)
	if err != nil || exists {
		c.missed.Forget(request.Name)
		return ctrl.Result{RequeueAfter: again}, err
	}
	now := c.Clock.Now()
	seen, known := c.missed.Get(request.Name)
	if !known || seen.namespace != namespace.UID {
		c.missed.Set(request.Name, sighting{namespace.UID, now})
		return ctrl.Result{RequeueAfter: pause}, nil
	}
	if left := seen.at.Add(pause).Sub(now); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	return ctrl.Result{}, c.end(ctx, member, namespace.UID)
}

// isHubs reports whether a namespace holds objects of the whole fleet. It has the same label as
// member namespaces, and a user may mark it for a member by mistake.
func (c *Controller) isHubs(name string) bool {
	return name == naming.RegistrationNamespace(c.SystemNamespace) || slices.Contains(c.Config.Current().InventoryNamespaces(), name)
}

// hasRecord reports whether the membership object exists. It queries the API server only if the
// cache does not have the object. During the deletion of the whole kind the object's state is
// unknown, and the hub checks again an hour later.
func (c *Controller) hasRecord(ctx context.Context, member membernamespace.Stray) (exists bool, again time.Duration, err error) {
	record := client.Object(&clusterv1beta1.MemberCluster{})
	if member.Workspace != "" {
		record = &fleet.Cluster{}
	}
	key := types.NamespacedName{Namespace: member.Workspace, Name: member.Name}
	if err := c.Client.Get(ctx, key, record); err == nil && (member.UID == "" || record.GetUID() == member.UID) {
		return true, 0, nil
	}
	if definition, err := c.Kinds.Deleted(ctx, record); err != nil || definition != "" {
		return true, time.Hour, err
	}
	exists, err = member.HasRecord(ctx, c.Live)
	return exists, 0, err
}

// end removes all access of the agent, and then deletes the namespace with the given UID.
func (c *Controller) end(ctx context.Context, member membernamespace.Stray, uid types.UID) error {
	namespace := kube.CoreMetadata("Namespace")
	err := c.Live.Get(ctx, types.NamespacedName{Name: member.Namespace}, namespace)
	if err != nil || namespace.UID != uid {
		return client.IgnoreNotFound(err)
	}
	if still, ok := membernamespace.StrayOf(namespace); !ok || still != member {
		return nil // the namespace has changed meanwhile
	}
	c.Liveness.Forget(member.Namespace)
	if err := member.EndAccess(ctx, c.Client, c.Live); err != nil {
		return err
	}
	if namespace.DeletionTimestamp == nil {
		if err := removal.Namespace(ctx, c.Client, namespace, removal.RecordGone); err != nil {
			return err
		}
	}
	return member.Release(ctx, c.Client, c.Live)
}
