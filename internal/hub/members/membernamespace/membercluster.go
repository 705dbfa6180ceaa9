package membernamespace

import (
	"context"
	_ "embed"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

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

const (
	// annotationIdentity on an account that the hub has made for the agent of a MemberCluster is
	// the identity for whose token the agent got a credential.
	annotationIdentity = "muster/identity"
	// annotationIdentityUID is the UID of the ServiceAccount that was the identity then.
	annotationIdentityUID = "muster/identity-uid"
)

// Exchange is for whom the hub makes accounts of a MemberCluster.
type Exchange struct {
	// Identity is the identity whose token the agent had, IdentityUID the UID of that
	// ServiceAccount; empty for a User.
	Identity    string
	IdentityUID types.UID
	// Key is the fingerprint of the agent's key.
	Key string
}

// annotations on an account that was made for this exchange.
func (e Exchange) annotations() map[string]string {
	annotations := map[string]string{membership.AnnotationAgent: string(membership.Native), annotationIdentity: e.Identity, fleet.AnnotationAgentKey: e.Key}
	if e.IdentityUID != "" {
		annotations[annotationIdentityUID] = string(e.IdentityUID)
	}
	return annotations
}

// Made reports whether an account was made for this exchange. A UID that is unknown on either side
// is not compared: earlier versions of the hub wrote none.
func (e Exchange) Made(account client.Object) bool {
	return account.GetUID() != "" && account.GetAnnotations()[fleet.AnnotationAgentKey] == e.Key && e.IsIdentityOf(account)
}

// IsIdentityOf reports whether an account was made for this identity, with whatever key.
func (e Exchange) IsIdentityOf(account client.Object) bool {
	annotations := account.GetAnnotations()
	made := types.UID(annotations[annotationIdentityUID])
	return annotations[annotationIdentity] == e.Identity && (made == "" || e.IdentityUID == "" || made == e.IdentityUID)
}

// Unpinned reports whether an account does not say yet which UID the identity had.
func (e Exchange) Unpinned(account client.Object) bool {
	return e.IdentityUID != "" && account.GetAnnotations()[annotationIdentityUID] == ""
}

// PinIdentity writes the UID of the identity to an account that an earlier version of the hub made.
func (e Exchange) PinIdentity(ctx context.Context, c client.Client, account client.Object) error {
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{%q:%q}}}`, account.GetUID(), annotationIdentityUID, e.IdentityUID)
	object := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: account.GetNamespace(), Name: account.GetName()}}
	if err := c.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(patch)), kube.FieldOwner); err != nil {
		return fmt.Errorf("pinning the identity to ServiceAccount %s/%s: %w", object.Namespace, object.Name, err)
	}
	return nil
}

// ExchangedAccount returns the account to which the hub issues credentials for the agent of a
// MemberCluster, in exchange for the token of the identity.
func (m Member) ExchangedAccount(e Exchange) *corev1.ServiceAccount {
	off := false
	account := &corev1.ServiceAccount{ObjectMeta: m.meta(m.Namespace, naming.MemberServiceAccount), AutomountServiceAccountToken: &off}
	account.Annotations = e.annotations()
	return account
}
