package token

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// annotationToken names the token of an object. A token's name may be longer than the value of a
// label.
const annotationToken = "fleet.cattle.io/registration-token"

// meta returns the metadata of an object of a token. Kubernetes deletes the object with the token.
func meta(token *fleet.ClusterRegistrationToken, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:            name,
		Namespace:       token.Namespace,
		Labels:          map[string]string{fleet.LabelManaged: "true"},
		Annotations:     map[string]string{annotationToken: token.Name},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(token, fleet.GroupVersion.WithKind("ClusterRegistrationToken"))},
	}
}

func accountName(token *fleet.ClusterRegistrationToken) string {
	return naming.TokenServiceAccount(token.Name, string(token.UID))
}

func desiredAccount(token *fleet.ClusterRegistrationToken) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: meta(token, accountName(token)), AutomountServiceAccountToken: new(false)}
}

// desiredAccess lets the account create requests in the name of its token. The chart's admission
// policy refuses requests in another name.
func desiredAccess(token *fleet.ClusterRegistrationToken) (*rbacv1.Role, *rbacv1.RoleBinding) {
	account := accountName(token)
	role := &rbacv1.Role{
		ObjectMeta: meta(token, naming.SafeConcat(account, "role")),
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"clusterregistrations"}, Verbs: []string{"create"},
		}, {
			APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"clusterregistrationtokens"}, ResourceNames: []string{token.Name},
			Verbs: []string{"register"},
		}},
	}
	return role, kube.RoleBinding(meta(token, naming.SafeConcat(account, "to", "role")), "Role", role.Name,
		kube.AccountSubject(token.Namespace, account))
}

func desiredSecret(token *fleet.ClusterRegistrationToken, text string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: meta(token, token.Name),
		Type:       fleet.SecretTypeValues,
		Data:       map[string][]byte{valuesKey: []byte(text)},
	}
}
