package membernamespace

import (
	"context"
	_ "embed"
	"fmt"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

var (
	//go:embed rules/native.yaml
	nativeRules []byte
	//go:embed rules/any.yaml
	anyRules []byte
)

// Rights are the rights of a MemberCluster's agent in its member namespace.
type Rights struct {
	Member
	// Identity of the agent; nil if the identity in the spec is not usable, and then no agent has
	// access.
	Identity *rbacv1.Subject
	// Native narrows the rights to the needs of Muster's own agent.
	Native bool
	// Quarantined narrows them to heartbeats and reports, of an agent of either kind.
	Quarantined bool
	// Exchanged grants the rights of the identity also to the account created by the hub for the
	// agent.
	Exchanged bool
}

// Role returns the Role of the identity.
func (r Rights) Role() (*rbacv1.Role, error) {
	text := anyRules
	if r.Native {
		text = nativeRules
	}
	role := &rbacv1.Role{ObjectMeta: r.meta(r.Namespace, naming.MemberClusterRole(r.Name))}
	if err := yaml.UnmarshalStrict(text, &role.Rules); err != nil {
		return nil, fmt.Errorf("decoding the rules of members: %w", err)
	}
	if r.Quarantined {
		role.Rules = slices.DeleteFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return !ofHeartbeat(rule) })
	}
	return role, nil
}

// ofHeartbeat reports whether a rule is only about the Lease and the report of a member.
func ofHeartbeat(rule rbacv1.PolicyRule) bool {
	return !slices.ContainsFunc(rule.APIGroups, func(group string) bool {
		return group != coordinationv1.GroupName && group != clusterv1beta1.GroupVersion.Group
	})
}

// Binding returns the RoleBinding of the identity. Without an identity the RoleBinding must not
// exist.
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

// ExchangedSubject returns the subject of the account created by the hub for the agent of a
// MemberCluster.
func (m Member) ExchangedSubject() rbacv1.Subject {
	return kube.AccountSubject(m.Namespace, naming.MemberServiceAccount)
}

const (
	// annotationIdentity is on an account created for the agent of a MemberCluster. It names the
	// identity behind the exchanged token.
	annotationIdentity = "muster/identity"
	// annotationIdentityUID is the UID of the identity's ServiceAccount at the time of the exchange.
	annotationIdentityUID = "muster/identity-uid"
)

// Exchange identifies the receiver of an account created by the hub for a MemberCluster.
type Exchange struct {
	// Identity is the identity of the agent's former token; IdentityUID is the UID of its
	// ServiceAccount, empty for a User.
	Identity    string
	IdentityUID types.UID
	// Key is the fingerprint of the agent's key.
	Key string
}

// annotations returns the annotations of an account created for this exchange.
func (e Exchange) annotations() map[string]string {
	annotations := map[string]string{
		membership.AnnotationAgent: string(membership.Native), annotationIdentity: e.Identity, fleet.AnnotationAgentKey: e.Key,
	}
	if e.IdentityUID != "" {
		annotations[annotationIdentityUID] = string(e.IdentityUID)
	}
	return annotations
}

// Made reports whether the hub created an account for this exchange. It ignores a UID unknown on
// either side: earlier versions of the hub wrote none.
func (e Exchange) Made(account client.Object) bool {
	return account.GetUID() != "" && account.GetAnnotations()[fleet.AnnotationAgentKey] == e.Key && e.IsIdentityOf(account)
}

// IsIdentityOf reports whether the hub created an account for this identity, with any key.
func (e Exchange) IsIdentityOf(account client.Object) bool {
	annotations := account.GetAnnotations()
	made := types.UID(annotations[annotationIdentityUID])
	return annotations[annotationIdentity] == e.Identity && (made == "" || e.IdentityUID == "" || made == e.IdentityUID)
}

// Unpinned reports whether an account still lacks the UID of the identity.
func (e Exchange) Unpinned(account client.Object) bool {
	return e.IdentityUID != "" && account.GetAnnotations()[annotationIdentityUID] == ""
}

// PinIdentity writes the UID of the identity to an account created by an earlier version of the
// hub.
func (e Exchange) PinIdentity(ctx context.Context, c client.Client, account client.Object) error {
	if err := annotateAccount(ctx, c, account, annotationIdentityUID, string(e.IdentityUID)); err != nil {
		return fmt.Errorf("pinning the identity to ServiceAccount %s/%s: %w", account.GetNamespace(), account.GetName(), err)
	}
	return nil
}

// ExchangedAccount returns the account for the hub's credentials to the agent of a MemberCluster,
// in exchange for the token of the identity.
func (m Member) ExchangedAccount(e Exchange) *corev1.ServiceAccount {
	off := false
	account := &corev1.ServiceAccount{ObjectMeta: m.meta(m.Namespace, naming.MemberServiceAccount), AutomountServiceAccountToken: &off}
	account.Annotations = e.annotations()
	return account
}
