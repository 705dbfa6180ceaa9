package membership

import (
	_ "embed"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

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
	}
	return binding
}
