// Package standby names the account of a standby: the cluster for a restore of the hub. A token of
// the account lets agents go there by themselves after the loss of the hub.
//
// muster hub standby-token issues the token. muster restore lets the account register, and the
// restored hub grants its requests.
//
// The agent of a MemberCluster has no registration request. The restored hub publishes a credential
// for it instead, sealed to the key of the agent.
//
// Its invariant: the account may only create registration requests, and read sealed credentials.
// Without the key of a member, a token of the account gets nothing.
package standby

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

const (
	// Account is the name of the account in the namespace of the hub.
	Account = "fleet-standby"
	// Secret is the default name of the Secret with a token, in the namespace of the first hub.
	Secret = "muster-standby-token"
	// Manager is the field manager of muster restore.
	Manager = "muster-restore"
	// Key is the key of the token in its Secret.
	Key = "token"
	// Life is the default life of a token. The API server may grant less.
	Life = 365 * 24 * time.Hour
	// WarnBefore is the time before the end of a token, for warnings.
	WarnBefore = 30 * 24 * time.Hour
)

// ServiceAccount returns the account in the namespace of a hub.
func ServiceAccount(namespace string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{
		ObjectMeta:                   metav1.ObjectMeta{Namespace: namespace, Name: Account},
		AutomountServiceAccountToken: new(false),
	}
}

// User returns the name of the account as a user.
func User(namespace string) string { return "system:serviceaccount:" + namespace + ":" + Account }

// Access returns the right of the account to create registration requests in a workspace.
func Access(workspace, namespace string) (*rbacv1.Role, *rbacv1.RoleBinding) {
	meta := metav1.ObjectMeta{Namespace: workspace, Name: Account}
	role := &rbacv1.Role{ObjectMeta: *meta.DeepCopy(), Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"clusterregistrations"}, Verbs: []string{"create"},
	}}}
	return role, kube.RoleBinding(meta, "Role", Account, kube.AccountSubject(namespace, Account))
}

// Reading returns the right of the account to read one request. Kubernetes deletes it with the
// request.
func Reading(r *fleet.ClusterRegistration, namespace string) (*rbacv1.Role, *rbacv1.RoleBinding) {
	meta := metav1.ObjectMeta{
		Namespace: r.Namespace, Name: "standby-" + string(r.UID), Labels: map[string]string{fleet.LabelManaged: "true"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: fleet.GroupVersion.String(), Kind: "ClusterRegistration", Name: r.Name, UID: r.UID,
		}},
	}
	role := &rbacv1.Role{ObjectMeta: *meta.DeepCopy(), Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"clusterregistrations"}, ResourceNames: []string{r.Name},
		Verbs: []string{"get", "list", "watch"},
	}}}
	return role, kube.RoleBinding(meta, "Role", meta.Name, kube.AccountSubject(namespace, Account))
}

// keyIssued is the key of a published credential.
const keyIssued = "credential"

// PublishedAt names the ConfigMap with the credential for an agent, by the fingerprint of its key.
// systemNamespace is the namespace of the restored hub.
func PublishedAt(systemNamespace, fingerprint string) types.NamespacedName {
	return types.NamespacedName{Namespace: naming.RegistrationNamespace(systemNamespace), Name: "standby-" + fingerprint}
}

// Published returns the ConfigMap with a credential for the agent of a MemberCluster. The
// MemberCluster owns it.
func Published(key types.NamespacedName, owner metav1.OwnerReference, issued *clusterv1beta1.IssuedCredential) (*corev1.ConfigMap, error) {
	text, err := json.Marshal(issued)
	if err != nil {
		return nil, fmt.Errorf("encoding the credential for %s: %w", owner.Name, err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name, Labels: map[string]string{fleet.LabelManaged: "true"},
			OwnerReferences: []metav1.OwnerReference{owner},
		},
		Data: map[string]string{keyIssued: string(text)},
	}, nil
}

// ReadPublished returns the credential in a ConfigMap.
func ReadPublished(published *corev1.ConfigMap) (*clusterv1beta1.IssuedCredential, error) {
	issued := &clusterv1beta1.IssuedCredential{}
	if err := json.Unmarshal([]byte(published.Data[keyIssued]), issued); err != nil || len(issued.Sealed) == 0 {
		return nil, fmt.Errorf("the ConfigMap %s/%s of the hub has no credential", published.Namespace, published.Name)
	}
	return issued, nil
}

// ReadingPublished returns the right of the account to read published credentials by name. The
// namespace has no other ConfigMap with content of its own.
func ReadingPublished(systemNamespace string) (*rbacv1.Role, *rbacv1.RoleBinding) {
	meta := metav1.ObjectMeta{
		Namespace: naming.RegistrationNamespace(systemNamespace), Name: Account, Labels: map[string]string{fleet.LabelManaged: "true"},
	}
	role := &rbacv1.Role{ObjectMeta: *meta.DeepCopy(), Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"},
	}}}
	return role, kube.RoleBinding(meta, "Role", Account, kube.AccountSubject(systemNamespace, Account))
}

// Problem returns a sentence about a token without use, or near its end; "" if there is no problem.
// A token without an end has the time zero.
func Problem(expires, now time.Time) string {
	switch {
	case expires.IsZero() || now.Before(expires.Add(-WarnBefore)):
		return ""
	case now.Before(expires):
		return fmt.Sprintf("the token of the standby expires at %s: create another with muster hub standby-token",
			expires.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("the token of the standby expired at %s: create another with muster hub standby-token",
		expires.UTC().Format(time.RFC3339))
}
