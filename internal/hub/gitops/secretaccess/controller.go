// Package secretaccess grants muster-hub gitops the right to read the objects in GitRepos and
// HelmOps.
//
// It writes a Role and a RoleBinding in each workspace with GitRepos or HelmOps. Its invariant: the
// Role names each object. An allowed GitRepo or HelmOp names each of them, or a Policy, as an
// object for GitRepos to copy.
package secretaccess

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/bundles/policy"
	"github.com/muster-fleet/muster/internal/hub/runtime/anyform"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// Controller writes the Roles.
type Controller struct {
	controller.Deps
	// cached reads from the cache. The client of the manager reads maps from the API server.
	cached client.Reader
}

// New returns the controller.
func New(deps controller.Deps) *Controller { return &Controller{Deps: deps} }

// Register adds the controller to the manager. Its requests are for namespaces.
func (c *Controller) Register(mgr ctrl.Manager) error {
	c.cached = mgr.GetCache()
	namespace := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: o.GetNamespace()}}}
	})
	own := builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == naming.GitOpsAccount }))
	return ctrl.NewControllerManagedBy(mgr).Named("gitops-secrets").
		Watches(anyform.Object("GitRepo"), namespace).
		Watches(anyform.Object("HelmOp"), namespace).
		Watches(&fleet.Policy{}, namespace).
		// The last GitRepo may have gone while no hub ran, or a hub was killed before it deleted both.
		Watches(kube.Metadata(rbacv1.SchemeGroupVersion.WithKind("Role")), namespace, own).
		Watches(kube.Metadata(rbacv1.SchemeGroupVersion.WithKind("RoleBinding")), namespace, own).
		Complete(controller.RetryConflicts(c.Recorder, c))
}

// Reconcile writes or deletes the Role of a workspace.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var policies fleet.PolicyList
	workspace := client.InNamespace(request.Name)
	if err := c.Client.List(ctx, &policies, workspace); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing the Policies of %s: %w", request.Name, err)
	}
	granted := newGrants(policy.Unite(policies.Items))
	for kind, add := range map[string]func(*unstructured.Unstructured){"GitRepo": granted.addGitRepo, "HelmOp": granted.addHelmOp} {
		list := anyform.List(kind)
		if err := c.cached.List(ctx, list, workspace); err != nil {
			return reconcile.Result{}, fmt.Errorf("listing the %ss of %s: %w", kind, request.Name, err)
		}
		for i := range list.Items {
			if list.Items[i].GetDeletionTimestamp() == nil {
				add(&list.Items[i])
			}
		}
	}
	role, binding := c.objects(request.Name, granted.rules())
	if len(role.Rules) == 0 {
		return reconcile.Result{}, kube.Delete(ctx, c.Client, binding, role)
	}
	return reconcile.Result{}, kube.Ensure(ctx, c.Client, role, binding)
}

func (c *Controller) objects(workspace string, rules []rbacv1.PolicyRule) (*rbacv1.Role, *rbacv1.RoleBinding) {
	meta := metav1.ObjectMeta{Namespace: workspace, Name: naming.GitOpsAccount, Labels: map[string]string{fleet.LabelManaged: "true"}}
	return &rbacv1.Role{ObjectMeta: meta, Rules: rules},
		kube.RoleBinding(meta, "Role", naming.GitOpsAccount, kube.AccountSubject(c.SystemNamespace, naming.GitOpsAccount))
}
