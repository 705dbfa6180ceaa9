package authorization

import (
	"context"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/muster-fleet/muster/internal/fleet/author"
)

// The kinds and resources of RBAC.
const (
	kindRole, kindClusterRole               = "Role", "ClusterRole"
	kindRoleBinding, kindClusterRoleBinding = "RoleBinding", "ClusterRoleBinding"
	roles, clusterRoles                     = "roles", "clusterroles"
)

// UnknownResource stands for an unserved kind. It needs the right to all resources of the group,
// because discovery cannot tell the resource of the kind.
func UnknownResource(kind schema.GroupVersionKind) schema.GroupVersionResource {
	return kind.GroupVersion().WithResource(anything)
}

// ToCreate returns the rights needed for an object that may exist already: to create and to update
// it. The rights cover all objects of the resource in the namespace. An envelope of many objects
// therefore needs few rights.
func ToCreate(resource schema.GroupVersionResource, o *unstructured.Unstructured) []Right {
	return append([]Right{
		{Verb: "create", Resource: resource, Namespace: o.GetNamespace()}, {Verb: "update", Resource: resource, Namespace: o.GetNamespace()},
	}, toGrant(resource, o, false)...)
}

// ToPatch returns the rights needed for a patch of an object. anyRole reports whether the patch
// may change the role in a binding.
func ToPatch(resource schema.GroupVersionResource, o *unstructured.Unstructured, anyRole bool) []Right {
	update := Right{Verb: "update", Resource: resource, Namespace: o.GetNamespace(), Name: o.GetName()}
	return append([]Right{update}, toGrant(resource, o, anyRole)...)
}

// ToDelete returns the right needed for the deletion of an object.
func ToDelete(resource schema.GroupVersionResource, o *unstructured.Unstructured) []Right {
	return []Right{{Verb: "delete", Resource: resource, Namespace: o.GetNamespace(), Name: o.GetName()}}
}

// grantingGroups are the API groups with Roles and bindings. OpenShift creates Roles and bindings
// of RBAC from objects in its own group.
var grantingGroups = []string{rbacv1.GroupName, "authorization.openshift.io"}

// toGrant returns the rights required by Kubernetes to write or bind a Role with more rights than
// the user has. In Kubernetes, users with these rights themselves need no escalate and bind; here
// they do.
func toGrant(resource schema.GroupVersionResource, o *unstructured.Unstructured, anyRole bool) []Right {
	if !slices.Contains(grantingGroups, resource.Group) {
		return nil
	}
	switch o.GetKind() {
	case kindRole:
		return []Right{{
			Verb: "escalate", Resource: rbacv1.SchemeGroupVersion.WithResource(roles), Namespace: o.GetNamespace(), Name: o.GetName(),
		}}
	case kindClusterRole:
		return []Right{{Verb: "escalate", Resource: rbacv1.SchemeGroupVersion.WithResource(clusterRoles), Name: o.GetName()}}
	case kindRoleBinding, kindClusterRoleBinding:
		return toBind(o, anyRole)
	}
	return nil
}

// toBind returns the right to bind the role in a binding, or else all possible roles of the
// binding.
func toBind(o *unstructured.Unstructured, anyRole bool) []Right {
	bind := Right{Verb: "bind", Resource: rbacv1.SchemeGroupVersion.WithResource(clusterRoles), Namespace: o.GetNamespace()}
	kind, _, kindErr := unstructured.NestedString(o.Object, "roleRef", "kind")
	name, _, nameErr := unstructured.NestedString(o.Object, "roleRef", "name")
	if kindErr == nil && nameErr == nil && name != "" && !anyRole {
		switch kind {
		case kindClusterRole:
			bind.Name = name
			return []Right{bind}
		case kindRole:
			bind.Resource.Resource, bind.Name = roles, name
			return []Right{bind}
		}
	}
	all := []Right{bind}
	if o.GetKind() == kindRoleBinding {
		bind.Resource.Resource = roles
		all = append(all, bind)
	}
	return all
}

// Missing returns the first missing right of an author; nil if the author has all of them. The
// right to all objects of a resource covers each of them.
func (r *Reviewer) Missing(ctx context.Context, author author.Author, rights []Right) (*Right, error) {
	for i := range rights {
		ofAll := rights[i]
		ofAll.Name = ""
		if allowed, err := r.Allows(ctx, author, ofAll); err == nil && allowed {
			continue // an error counts only if the right to the object is unknown, too
		}
		allowed, err := r.Allows(ctx, author, rights[i])
		if err != nil {
			return nil, err
		}
		if !allowed {
			return &rights[i], nil
		}
	}
	return nil, nil
}
