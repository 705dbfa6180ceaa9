// Package secretaccess grants muster-hub gitops the right to read the credentials of GitRepos.
//
// It writes a Role and a RoleBinding in each workspace with GitRepos. Its invariant: the Role names
// each Secret, and an allowed GitRepo of the workspace names each of them too.
package secretaccess

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/bundles/policy"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// Controller writes the Roles.
type Controller struct{ controller.Deps }

// New returns the controller.
func New(deps controller.Deps) *Controller { return &Controller{deps} }

// Register adds the controller to the manager. Its requests are for namespaces.
func (c *Controller) Register(mgr ctrl.Manager) error {
	namespace := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: o.GetNamespace()}}}
	})
	return ctrl.NewControllerManagedBy(mgr).Named("gitops-secrets").
		Watches(gitRepos(), namespace).
		Watches(&fleet.Policy{}, namespace).
		Complete(controller.RetryConflicts(c.Recorder, c))
}

// gitRepos are GitRepos as maps. An object stored by an earlier definition may not fit the type. It
// must not keep the hub from starting.
func gitRepos() *unstructured.Unstructured {
	repo := &unstructured.Unstructured{}
	repo.SetGroupVersionKind(fleet.GroupVersion.WithKind("GitRepo"))
	return repo
}

// Reconcile writes or deletes the Role of a workspace.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	repos := &unstructured.UnstructuredList{}
	repos.SetGroupVersionKind(fleet.GroupVersion.WithKind("GitRepoList"))
	var policies fleet.PolicyList
	workspace := client.InNamespace(request.Name)
	if err := c.Client.List(ctx, repos, workspace); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing the GitRepos of %s: %w", request.Name, err)
	}
	if err := c.Client.List(ctx, &policies, workspace); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing the Policies of %s: %w", request.Name, err)
	}
	role, binding := c.objects(request.Name, named(repos.Items, policy.Unite(policies.Items)))
	if len(role.Rules) == 0 {
		return reconcile.Result{}, kube.Delete(ctx, c.Client, binding, role)
	}
	return reconcile.Result{}, kube.Ensure(ctx, c.Client, role, binding)
}

// named returns the Secrets of allowed GitRepos, also the default one, sorted.
func named(repos []unstructured.Unstructured, rules policy.Rules) []string {
	names := map[string]bool{}
	for i := range repos {
		var spec fleet.GitRepoSpec
		fields, _, _ := unstructured.NestedMap(repos[i].Object, "spec")
		if runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &spec) != nil {
			continue // no program can read it
		}
		allowed, err := rules.CheckGitRepo(policy.GitRepo{Repo: spec.Repo, ServiceAccount: spec.ServiceAccount,
			ClientSecretName: spec.ClientSecretName, TargetNamespace: spec.TargetNamespace})
		if err != nil || repos[i].GetDeletionTimestamp() != nil {
			continue
		}
		names[cmp.Or(allowed.ClientSecretName, fleet.DefaultGitSecret)] = true
		if spec.HelmSecretName != "" && rules.CheckHelmSecret(spec.HelmSecretName) == nil {
			names[spec.HelmSecretName] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func (c *Controller) objects(workspace string, secrets []string) (*rbacv1.Role, *rbacv1.RoleBinding) {
	meta := metav1.ObjectMeta{Namespace: workspace, Name: naming.GitOpsAccount, Labels: map[string]string{fleet.LabelManaged: "true"}}
	role := &rbacv1.Role{ObjectMeta: meta}
	if len(secrets) > 0 {
		role.Rules = []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: secrets, Verbs: []string{"get"},
		}}
	}
	return role, kube.RoleBinding(meta, "Role", naming.GitOpsAccount, kube.AccountSubject(c.SystemNamespace, naming.GitOpsAccount))
}
