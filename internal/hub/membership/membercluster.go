package membership

import (
	_ "embed"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

var (
	//go:embed rules/native.yaml
	nativeRules []byte
	//go:embed rules/any.yaml
	anyRules []byte
)

// Rights are those of the agent of a MemberCluster in its member namespace.
type Rights struct {
	Member
	// Identity of the agent; nil if the one that the record asks for is not usable, and then nobody has access.
	Identity *rbacv1.Subject
	// Native narrows the rights to those of Muster's own agent.
	Native bool
	// Exchanged gives the account that the hub has made for the agent the rights of the identity.
	Exchanged bool
}

// Role returns what the identity may do.
func (r Rights) Role() (*rbacv1.Role, error) {
	text := anyRules
	if r.Native {
		text = nativeRules
	}
	role := &rbacv1.Role{ObjectMeta: r.meta(r.Namespace, naming.MemberClusterRole(r.Name))}
	if err := yaml.UnmarshalStrict(text, &role.Rules); err != nil {
		return nil, fmt.Errorf("decoding the rules of members: %w", err)
	}
	return role, nil
}

// Binding returns the RoleBinding of the identity, which must not exist without one.
func (r Rights) Binding() *rbacv1.RoleBinding {
	binding := kube.RoleBinding(r.meta(r.Namespace, naming.MemberClusterRoleBinding(r.Name)), "Role", naming.MemberClusterRole(r.Name))
	if r.Identity != nil {
		subject := *r.Identity
		if subject.Kind != rbacv1.ServiceAccountKind {
			subject.APIGroup, subject.Namespace = rbacv1.GroupName, ""
		}
		binding.Subjects = []rbacv1.Subject{subject}
		if r.Exchanged {
			binding.Subjects = append(binding.Subjects, r.ExchangedSubject())
		}
	}
	return binding
}

// ExchangedSubject is the account that the hub makes for the agent of a MemberCluster.
func (m Member) ExchangedSubject() rbacv1.Subject {
	return kube.AccountSubject(m.Namespace, naming.MemberServiceAccount)
}

// annotationIdentity on the account that the hub has made for the agent of a MemberCluster is the identity for whose token the agent got a credential.
const annotationIdentity = "muster/identity"

// ExchangedAccount returns the account to which the hub issues credentials for the agent of a MemberCluster, in exchange for the token of the identity.
func (m Member) ExchangedAccount(identity, key string) *corev1.ServiceAccount {
	off := false
	account := &corev1.ServiceAccount{ObjectMeta: m.meta(m.Namespace, naming.MemberServiceAccount), AutomountServiceAccountToken: &off}
	account.Annotations = map[string]string{annotationAgent: string(Native), annotationIdentity: identity, fleet.AnnotationAgentKey: key}
	return account
}

// MadeInExchange returns whether an account was made for the agent with a key that had the token of an identity.
func MadeInExchange(account client.Object, identity, key string) bool {
	annotations := account.GetAnnotations()
	return account.GetUID() != "" && annotations[annotationIdentity] == identity && annotations[fleet.AnnotationAgentKey] == key
}
