package membership

import (
	_ "embed"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/naming"
)

var (
	//go:embed rules/native.yaml
	nativeRules []byte
	//go:embed rules/any.yaml
	anyRules []byte
)

// Desired is what the namespace of a MemberCluster holds.
type Desired struct {
	Member
	// Identity of the agent; nil if the one asked for is not usable, and then nobody has access.
	Identity *rbacv1.Subject
	// Native narrows the rights to those of Muster's own agent.
	Native bool
	// State is what the agent is asked to do.
	State clusterv1beta1.ClusterState
	// LeavePolicy is how, if that is to leave.
	LeavePolicy clusterv1beta1.LeavePolicy
	// Period between beats.
	Period time.Duration
	// Hub is where the agent should reach the hub.
	Hub *clusterv1beta1.HubAddress
}

// Role returns what the identity may do.
func (d Desired) Role() (*rbacv1.Role, error) {
	text := anyRules
	if d.Native {
		text = nativeRules
	}
	role := &rbacv1.Role{ObjectMeta: d.meta(d.Namespace, naming.MemberClusterRole(d.Name))}
	if err := yaml.UnmarshalStrict(text, &role.Rules); err != nil {
		return nil, fmt.Errorf("decoding the rules of members: %w", err)
	}
	return role, nil
}

// Binding returns who may do it. Without an identity there must be none.
func (d Desired) Binding() *rbacv1.RoleBinding {
	binding := &rbacv1.RoleBinding{
		ObjectMeta: d.meta(d.Namespace, naming.MemberClusterRoleBinding(d.Name)),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: naming.MemberClusterRole(d.Name)},
	}
	if d.Identity != nil {
		subject := *d.Identity
		if subject.Kind != rbacv1.ServiceAccountKind {
			subject.APIGroup, subject.Namespace = rbacv1.GroupName, ""
		}
		binding.Subjects = []rbacv1.Subject{subject}
	}
	return binding
}

// Report returns the report with what the agent is asked for.
func (d Desired) Report() *clusterv1beta1.InternalMemberCluster {
	asked := Join(d.Period, d.Hub)
	asked.State = d.State
	if d.State == clusterv1beta1.ClusterStateLeave {
		asked.LeavePolicy = d.LeavePolicy
	}
	return d.report(asked)
}

// Lease returns the heartbeat of the member.
func (d Desired) Lease() client.Object { return d.lease() }
