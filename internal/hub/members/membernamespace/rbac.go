package membernamespace

import (
	"embed"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// Names of the ClusterRoles that members are bound to.
const (
	memberRole           = "muster-member"
	selfRenewalRole      = "muster-member-renewal"
	bundleDeploymentRole = "fleet-bundle-deployment"
)

// ContentRole is the ClusterRole to read Contents.
const ContentRole = "fleet-content"

// tokenIssuer is the ClusterRole by which the hub may issue tokens, and the name of its bindings; the chart makes it.
const tokenIssuer = "fleet-controller-tokens"

// TokenIssuer lets the hub issue tokens in a workspace: those of ClusterRegistrationTokens, and those by which agents reconnect.
func TokenIssuer(workspace, systemNamespace string) *rbacv1.RoleBinding {
	meta := metav1.ObjectMeta{Namespace: workspace, Name: tokenIssuer, Labels: map[string]string{fleet.LabelManaged: "true"}}
	return kube.RoleBinding(meta, "ClusterRole", tokenIssuer, kube.AccountSubject(systemNamespace, naming.HubServiceAccount))
}

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
