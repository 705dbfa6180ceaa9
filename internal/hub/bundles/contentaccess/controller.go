// Package contentaccess lets members read Contents by name. A Content belongs to no namespace, so
// that this takes a ClusterRoleBinding, and the API server looks at each ClusterRoleBinding there
// is for each request of anybody. So members share a fixed number of them.
//
// It owns the ClusterRoleBindings fleet-content-00 to fleet-content-63. Its invariants: an account
// is bound only while there is the very namespace, by UID, that was its member's when Grant was
// called; what anybody else writes into these bindings is set back.
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
	// bindings is how many there are at most. Of ten thousand members each has some 160, in 15 KB.
	bindings = 64
	// gather is how long members that have left are gathered before their binding is written.
	gather = time.Second
	// annotationNamespaces on a binding has the UID of each member namespace in it, as a JSON object,
	// so that a hub that starts knows for which of them it gave the right.
	annotationNamespaces = "muster/namespaces"
)

// Controller gives members the right to read Contents, and takes it from those that have left.
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

// Grant lets the account of a member namespace, which the caller has observed to be the hub's, read
// Contents. Of many calls at once for members of one binding, one writes for all.
func (c *Controller) Grant(ctx context.Context, namespace string, uid types.UID) error {
	return c.bindings[BindingOf(namespace)].add(ctx, namespace, uid)
}

// Reconcile sets back what somebody else has written into a binding, and takes the accounts out of
// it whose namespace is gone, or another one by now.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	return ctrl.Result{}, c.bindings[request.Name].restore(ctx)
}
