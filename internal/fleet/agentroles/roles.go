// Package agentroles holds the ClusterRoles for the identities of members, and finds foreign
// ClusterRoles of the same names.
package agentroles

import (
	"context"
	"embed"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

// The names of the ClusterRoles for members.
const (
	MemberRole           = "muster-member"
	QuarantinedRole      = "muster-member-quarantined"
	SelfRenewalRole      = "muster-member-renewal"
	ReconnectRole        = "muster-member-reconnect"
	BundleDeploymentRole = "fleet-bundle-deployment"
)

// ContentRole is the ClusterRole to read Contents.
const ContentRole = "fleet-content"

//go:embed rbac/*.yaml
var rbacFS embed.FS

// ClusterRoles returns the roles for identities of members; the hub applies them at its start.
func ClusterRoles() ([]client.Object, error) {
	entries, err := rbacFS.ReadDir("rbac")
	if err != nil {
		return nil, err
	}
	var roles []client.Object
	for _, entry := range entries {
		text, err := rbacFS.ReadFile("rbac/" + entry.Name())
		if err != nil {
			return nil, err
		}
		role := &rbacv1.ClusterRole{}
		if err := yaml.UnmarshalStrict(text, role); err != nil {
			return nil, fmt.Errorf("decoding rbac/%s: %w", entry.Name(), err)
		}
		role.Labels = map[string]string{fleet.LabelManaged: "true"}
		roles = append(roles, role)
	}
	return roles, nil
}

// rancherBootstrap is the object set of the ClusterRoles from Rancher Fleet's hub for its agents.
const rancherBootstrap = "fleet-bootstrap-data"

// RolesThere holds the existing ClusterRoles with the name of a hub's role and another creator.
type RolesThere struct {
	// Theirs are the roles of Rancher Fleet's hub; the hub takes them over.
	Theirs []client.Object
	// Foreign holds the names of all others. They prevent the hub from creating its own.
	Foreign []string
}

// FindRoles reads the ClusterRoles of other creators. A name alone proves nothing: Rancher Fleet's
// hub marks its own. The objects are unstructured, so the reader bypasses the cache.
func FindRoles(ctx context.Context, reader client.Reader) (found RolesThere, err error) {
	roles, err := ClusterRoles()
	if err != nil {
		return found, err
	}
	for _, role := range roles {
		existing := &unstructured.Unstructured{}
		existing.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))
		switch err := reader.Get(ctx, client.ObjectKeyFromObject(role), existing); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return found, fmt.Errorf("reading ClusterRole %s: %w", role.GetName(), err)
		case existing.GetLabels()[fleet.LabelManaged] == "true":
		case kube.ObjectSetOf(existing).ID == rancherBootstrap:
			found.Theirs = append(found.Theirs, existing)
		default:
			found.Foreign = append(found.Foreign, role.GetName())
		}
	}
	return found, nil
}

// TakeOver marks the hub's roles in the place of Rancher Fleet's. The hub applies a role with an
// existing UID over this role only, and never over one re-created under its name.
func (r RolesThere) TakeOver(roles []client.Object) {
	for _, theirs := range r.Theirs {
		for _, role := range roles {
			if role.GetName() == theirs.GetName() {
				role.SetUID(theirs.GetUID())
			}
		}
	}
}
