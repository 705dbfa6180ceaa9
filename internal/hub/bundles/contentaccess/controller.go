// Package contentaccess lets members read Contents by name. A Content has no namespace, so the
// right needs a ClusterRoleBinding. The API server evaluates every ClusterRoleBinding for every
// request. Members therefore share a fixed number of them.
//
// It owns the ClusterRoleBindings fleet-content-00 to fleet-content-63. Its invariants: an account
// is bound only while its member's namespace has the UID it had at the call of Grant. The package
// reverts changes by others to these bindings.
package contentaccess

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/muster-fleet/muster/internal/fleet/agentroles"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
)

const (
	// bindings is the number of bindings. With ten thousand members each binds some 160, in 15
	// KB.
	bindings = 64
	// gather is the delay of a write after a member leaves. Further members may leave meanwhile.
	gather = time.Second
	// annotationNamespaces on a binding has the UID of each member namespace in it, as a JSON
	// object. After a restart the hub reads from it the namespaces with the right.
	annotationNamespaces = "muster/namespaces"
)

// Controller grants members the right to read Contents, and revokes it when they leave.
type Controller struct {
	controller.Deps
	bindings map[string]*binding
}

// New returns a controller.
func New(deps controller.Deps) *Controller {
	c := &Controller{Deps: deps, bindings: map[string]*binding{}}
	for i := range bindings {
		c.bindings[nameOf(i)] = &binding{deps: deps, name: nameOf(i)}
	}
	return c
}

func nameOf(i int) string { return fmt.Sprintf("%s-%02d", agentroles.ContentRole, i) }

// BindingOf returns the name of the ClusterRoleBinding for the account of a member namespace.
func BindingOf(namespace string) string {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(namespace)) // it returns no error
	return nameOf(int(hash.Sum32() % bindings))
}

// Register adds the controller to the manager.
func (c *Controller) Register(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("contentaccess").
		WatchesMetadata(&rbacv1.ClusterRoleBinding{}, handler.EnqueueRequestsFromMapFunc(c.itself)).
		WatchesMetadata(&corev1.Namespace{}, controller.On(onNamespace)).
		Complete(controller.RetryConflicts(c.Recorder, c))
}

func (c *Controller) itself(_ context.Context, o client.Object) []reconcile.Request {
	if c.bindings[o.GetName()] == nil {
		return nil
	}
	return controller.Requests(o)
}

func onNamespace(_ context.Context, before, after client.Object, q controller.Queue) {
	if after == nil {
		request := reconcile.Request{}
		request.Name = BindingOf(before.GetName())
		q.AddAfter(request, gather)
	}
}

// Grant lets the account of a member namespace read Contents. The caller must have verified the hub
// as the owner of the namespace. Of many concurrent calls for one binding, one writes for all.
func (c *Controller) Grant(ctx context.Context, namespace string, uid types.UID) error {
	return c.bindings[BindingOf(namespace)].add(ctx, namespace, uid)
}

// Withdraw takes this right away from a member namespace. Until Readmit, Grant has no effect there.
func (c *Controller) Withdraw(ctx context.Context, namespace string) error {
	return c.bindings[BindingOf(namespace)].remove(ctx, namespace)
}

// Readmit ends a Withdraw, and grants the right again if the namespace had it, or was to get it in
// the meantime. An empty UID grants nothing: the namespace is gone. Otherwise it costs no request.
func (c *Controller) Readmit(ctx context.Context, namespace string, uid types.UID) error {
	return c.bindings[BindingOf(namespace)].readmit(ctx, namespace, uid)
}

// Reconcile reverts changes by others to a binding. It removes accounts of namespaces deleted or
// created again.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	return ctrl.Result{}, c.bindings[request.Name].restore(ctx)
}
