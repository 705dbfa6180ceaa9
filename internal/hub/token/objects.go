package token

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
)

// annotationToken leads from everything that belongs to a token back to it. It is not a label, because a token's name may be
// longer than a label value.
const annotationToken = "fleet.cattle.io/registration-token"

// meta is the metadata of everything that belongs to a token: it goes with it.
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
	off := false
	return &corev1.ServiceAccount{ObjectMeta: meta(token, accountName(token)), AutomountServiceAccountToken: &off}
}

// desiredAccess lets the account ask, and nothing else.
func desiredAccess(token *fleet.ClusterRegistrationToken) (*rbacv1.Role, *rbacv1.RoleBinding) {
	account := accountName(token)
	role := &rbacv1.Role{
		ObjectMeta: meta(token, naming.SafeConcat(account, "role")),
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"clusterregistrations"}, Verbs: []string{"create"},
		}},
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: meta(token, naming.SafeConcat(account, "to", "role")),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: token.Namespace, Name: account}},
	}
	return role, binding
}

func desiredSecret(token *fleet.ClusterRegistrationToken, text string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: meta(token, token.Name),
		Type:       fleet.SecretTypeValues,
		Data:       map[string][]byte{valuesKey: []byte(text)},
	}
}

// desiredAccountToken asks Kubernetes for a token without an end; it goes with the account.
func desiredAccountToken(account *corev1.ServiceAccount) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name:            naming.ServiceAccountToken(account.Name),
			Namespace:       account.Namespace,
			Labels:          map[string]string{fleet.LabelManaged: "true"},
			Annotations:     map[string]string{annotationToken: account.Annotations[annotationToken], corev1.ServiceAccountNameKey: account.Name},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(account, corev1.SchemeGroupVersion.WithKind("ServiceAccount"))},
		},
		Type: corev1.SecretTypeServiceAccountToken,
	}
}
