package backup

import (
	"context"
	"fmt"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/fleet/standby"
	"github.com/muster-fleet/muster/internal/naming"
)

// admitStandby lets agents with a token of the standby register in the workspaces of restored
// Clusters. Without muster hub standby-token, the account does not exist, and the right serves no
// token. A hub with a key of its own gets no such right, because agents refuse it there.
func (r *restoring) admitStandby(ctx context.Context) error {
	if r.keepsOwnKey() {
		return nil
	}
	for _, workspace := range slices.Sorted(maps.Keys(r.workspaces)) {
		role, binding := standby.Access(workspace, naming.SystemNamespace)
		err := r.ensure(ctx, "roles", "Role", role)
		if err == nil {
			err = r.ensure(ctx, "rolebindings", "RoleBinding", binding)
		}
		if err != nil {
			return fmt.Errorf("letting agents of the lost hub register in workspace %s: %w", workspace, err)
		}
	}
	return nil
}

// noteAgentKey notes the public key of an agent from its report. With it, the restored hub issues a
// credential to the agent of a MemberCluster.
func (r *restoring) noteAgentKey(report *unstructured.Unstructured) {
	owner := metav1.GetControllerOf(report)
	key, _, _ := unstructured.NestedString(report.Object, "status", "agentKey")
	if owner != nil && owner.Kind == "MemberCluster" {
		r.agentKeys[owner.UID] = key
	}
}

// ensure creates an object of RBAC, unless it exists. An object of this name with other rules,
// another Role or other subjects belongs to another user, and gives the account other rights.
func (r *restoring) ensure(ctx context.Context, name, kind string, o client.Object) error {
	resource := rbacv1.SchemeGroupVersion.WithResource(name)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return err
	}
	created := &unstructured.Unstructured{Object: content}
	created.SetGroupVersionKind(resource.GroupVersion().WithKind(kind))
	objects := r.hub.Resource(resource).Namespace(o.GetNamespace())
	if _, err = objects.Create(ctx, created, metav1.CreateOptions{FieldManager: fieldManager}); !apierrors.IsAlreadyExists(err) {
		return err
	}
	have, err := objects.Get(ctx, o.GetName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, field := range []string{"rules", "roleRef", "subjects"} {
		if !equality.Semantic.DeepEqual(have.Object[field], content[field]) {
			return fmt.Errorf("there is another %s %s: delete it, and run the command again", kind, o.GetName())
		}
	}
	return nil
}
