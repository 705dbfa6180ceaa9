package membership

import (
	"embed"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// Names of the ClusterRoles that members are bound to.
const (
	memberRole           = "muster-member"
	selfRenewalRole      = "muster-member-renewal"
	bundleDeploymentRole = "fleet-bundle-deployment"
	contentRole          = "fleet-content"
)

//go:embed rbac/*.yaml
var rbacFS embed.FS

// ClusterRoles returns what identities of members may be bound to; the hub applies them when it starts.
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
