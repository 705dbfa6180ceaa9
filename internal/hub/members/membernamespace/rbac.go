package membernamespace

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// tokenIssuer is the hub's ClusterRole for issuing tokens, and the name of its bindings; the chart
// creates it.
const tokenIssuer = "fleet-controller-tokens"

// TokenIssuer lets the hub issue tokens in a workspace: for ClusterRegistrationTokens, and for
// rejoining agents.
func TokenIssuer(workspace, systemNamespace string) *rbacv1.RoleBinding {
	meta := metav1.ObjectMeta{Namespace: workspace, Name: tokenIssuer, Labels: map[string]string{fleet.LabelManaged: "true"}}
	return kube.RoleBinding(meta, "ClusterRole", tokenIssuer, kube.AccountSubject(systemNamespace, naming.HubServiceAccount))
}
