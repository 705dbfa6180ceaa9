// Package contentaccess lets members read Contents by name. A Content has no namespace, so the
// right needs a ClusterRoleBinding. The API server evaluates every ClusterRoleBinding for every
// request. Members therefore share a fixed number of them. New members fill one binding before the
// next, so that members of the same moment share a write.
//
// It owns the ClusterRoleBindings fleet-content-00 to fleet-content-63. Its invariants: an account
// is bound only while its member's namespace has the UID it had at the call of Grant. One binding
// has it. The package reverts changes by others to these bindings.
package contentaccess

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/agentroles"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
)

const (
	// bindings is the number of bindings.
	bindings = 64
	// room is the number of accounts in a binding before a new member gets another one: some 15 KB.
	// With more than ten thousand members, bindings become larger.
	room = 160
	// gather is the delay of a write after a member leaves. Further members may leave meanwhile.
	gather = time.Second
	// annotationNamespaces on a binding has the UID of each member namespace in it, as a JSON
	// object. After a restart the hub reads from it the namespaces with the right.
	annotationNamespaces = "muster/namespaces"
)

// Controller grants members the right to read Contents, and revokes it when they leave.
type Controller struct {
	controller.Deps
	bindings []*binding

	// mu is held while a namespace gets a binding, and during the first read of the bindings.
	mu     sync.Mutex
	loaded bool
}

// New returns a controller.
func New(deps controller.Deps) *Controller {
	c := &Controller{Deps: deps}
	for i := range bindings {
		name := fmt.Sprintf("%s-%02d", agentroles.ContentRole, i)
		c.bindings = append(c.bindings, &binding{deps: deps, name: name, bound: namespaces{}})
	}
	return c
}

// named returns the binding with a name, or nil.
func (c *Controller) named(name string) *binding {
	for _, b := range c.bindings {
		if b.name == name {
			return b
		}
	}
	return nil
}

// load reads the bindings of an earlier process once. The caller holds mu.
func (c *Controller) load(ctx context.Context) error {
	if c.loaded {
		return nil
	}
	var found rbacv1.ClusterRoleBindingList
	if err := c.Live.List(ctx, &found, client.MatchingLabels{fleet.LabelManaged: "true"}); err != nil {
		return fmt.Errorf("listing the ClusterRoleBindings of members: %w", err)
	}
	existing := map[string]*rbacv1.ClusterRoleBinding{}
	for i := range found.Items {
		existing[found.Items[i].Name] = &found.Items[i]
	}
	for _, b := range c.bindings {
		b.load(ctx, existing[b.name], func(namespace string) bool { return c.holder(namespace) != nil })
	}
	c.loaded = true
	return nil
}

// holder returns the binding of a member namespace, or nil. The caller holds mu.
func (c *Controller) holder(namespace string) *binding {
	for _, b := range c.bindings {
		if b.holds(namespace) {
			return b
		}
	}
	return nil
}

// place returns the binding of a member namespace. A new one gets the fullest binding with room, or
// the emptiest of full ones. The caller holds mu.
func (c *Controller) place(namespace string) *binding {
	if b := c.holder(namespace); b != nil {
		return b
	}
	return slices.MaxFunc(c.bindings, func(a, b *binding) int { return cmp.Compare(preference(a.size()), preference(b.size())) })
}

// preference returns the order of bindings of a size for a new account.
func preference(size int) int {
	switch {
	case size < 0:
		return math.MinInt
	case size < room:
		return size
	}
	return -size
}

// Register adds the controller to the manager.
func (c *Controller) Register(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("contentaccess").
		WatchesMetadata(&rbacv1.ClusterRoleBinding{}, handler.EnqueueRequestsFromMapFunc(c.itself)).
		WatchesMetadata(&corev1.Namespace{}, controller.On(c.onNamespace)).
		Complete(controller.RetryConflicts(c.Recorder, c))
}

func (c *Controller) itself(_ context.Context, o client.Object) []reconcile.Request {
	if c.named(o.GetName()) == nil {
		return nil
	}
	return controller.Requests(o)
}

func (c *Controller) onNamespace(_ context.Context, before, after client.Object, q controller.Queue) {
	if after != nil {
		return
	}
	c.mu.Lock()
	b := c.holder(before.GetName())
	c.mu.Unlock()
	if b != nil {
		q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: b.name}}, gather)
	}
}

// Grant lets the account of a member namespace read Contents. The caller must have verified the hub
// as the owner of the namespace. Of many concurrent calls for one binding, one writes for all.
func (c *Controller) Grant(ctx context.Context, namespace string, uid types.UID) error {
	b, err := c.enlist(ctx, namespace, uid)
	if b == nil || err != nil {
		return err
	}
	return b.add(ctx, namespace, uid)
}

// enlist queues a namespace for its binding. It returns no binding if there is nothing to write.
func (c *Controller) enlist(ctx context.Context, namespace string, uid types.UID) (*binding, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.load(ctx); err != nil {
		return nil, err
	}
	if b := c.place(namespace); b.enlist(namespace, uid) {
		return b, nil
	}
	return nil, nil
}

// Withdraw takes this right away from a member namespace. Until Readmit, Grant has no effect there.
func (c *Controller) Withdraw(ctx context.Context, namespace string) error {
	b, err := c.exclude(ctx, namespace)
	if err != nil {
		return err
	}
	for _, unknown := range c.bindings { // one of them may have the account, too
		if err := unknown.settle(ctx); err != nil {
			return err
		}
	}
	return b.remove(ctx, namespace)
}

// exclude refuses a namespace until Readmit, and returns its binding.
func (c *Controller) exclude(ctx context.Context, namespace string) (*binding, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.load(ctx); err != nil {
		return nil, err
	}
	b := c.place(namespace)
	b.exclude(namespace)
	return b, nil
}

// Readmit ends a Withdraw, and grants the right again if the namespace had it, or was to get it in
// the meantime. An empty UID grants nothing: the namespace is gone. Otherwise it costs no request.
func (c *Controller) Readmit(ctx context.Context, namespace string, uid types.UID) error {
	c.mu.Lock()
	b := c.holder(namespace)
	c.mu.Unlock()
	if b == nil || !b.readmit(namespace) || uid == "" {
		return nil
	}
	return c.Grant(ctx, namespace, uid)
}

// Reconcile reverts changes by others to a binding. It removes accounts of namespaces deleted or
// created again.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	c.mu.Lock()
	err := c.load(ctx)
	c.mu.Unlock()
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, c.named(request.Name).restore(ctx)
}
