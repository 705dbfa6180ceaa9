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

// UnknownResource stands for a kind that the hub does not serve: it takes the right to all
// resources of the group, because discovery cannot tell which resource is meant.
func UnknownResource(kind schema.GroupVersionKind) schema.GroupVersionResource {
	return kind.GroupVersion().WithResource(anything)
}

// ToCreate returns the rights that an object takes which may be there already: to create and to
// update it. They are rights to all objects of the resource in the namespace, so that an envelope
// of many objects takes few.
func ToCreate(resource schema.GroupVersionResource, o *unstructured.Unstructured) []Right {
	return append([]Right{
		{Verb: "create", Resource: resource, Namespace: o.GetNamespace()}, {Verb: "update", Resource: resource, Namespace: o.GetNamespace()},
	}, toGrant(resource, o, false)...)
}

// ToPatch returns the rights that a patch of an object takes. anyRole says that the patch may
// change the role that a binding refers to.
func ToPatch(resource schema.GroupVersionResource, o *unstructured.Unstructured, anyRole bool) []Right {
	update := Right{Verb: "update", Resource: resource, Namespace: o.GetNamespace(), Name: o.GetName()}
	return append([]Right{update}, toGrant(resource, o, anyRole)...)
}

// ToDelete returns the right that the deletion of an object takes.
func ToDelete(resource schema.GroupVersionResource, o *unstructured.Unstructured) []Right {
	return []Right{{Verb: "delete", Resource: resource, Namespace: o.GetNamespace(), Name: o.GetName()}}
}

// grantingGroups are the API groups with Roles and bindings. OpenShift makes Roles and bindings of
// RBAC out of those in its own group.
var grantingGroups = []string{rbacv1.GroupName, "authorization.openshift.io"}

// toGrant returns the rights without which Kubernetes refuses to users that they write a Role, or
// bind one, that has more rights than they have. Users who have these rights themselves need no
// escalate and bind there; here they do.
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

// toBind returns the right to bind the role that a binding refers to, or else all roles that it
// could refer to.
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

// Missing returns the first of some rights that an author does not have; nil if the author has all
// of them. The right to all objects of a resource answers for each of them.
func (r *Reviewer) Missing(ctx context.Context, author author.Author, rights []Right) (*Right, error) {
	for i := range rights {
		ofAll := rights[i]
		ofAll.Name = ""
		if allowed, err := r.Allows(ctx, author, ofAll); err == nil && allowed {
			continue // an error counts if the right to the object is not known either
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
