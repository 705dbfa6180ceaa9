package membernamespace

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// ReadReconnectAccount reads the metadata of the account for rejoining a MemberCluster. The
// metadata has no UID if there is none.
func (m Member) ReadReconnectAccount(ctx context.Context, reader client.Reader) (*metav1.PartialObjectMetadata, error) {
	account := kube.CoreMetadata("ServiceAccount")
	err := reader.Get(ctx, types.NamespacedName{Namespace: m.Namespace, Name: naming.MemberReconnectAccount}, account)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading the account for the return of the member of %s: %w", m.Namespace, err)
	}
	return account, nil
}

// Reconnect returns an account, a Role and a RoleBinding for rejoining a MemberCluster. With this
// account, an agent with an expired credential may read its own report, and nothing else.
func (m Member) Reconnect(e Exchange) (*rbacv1.Role, *rbacv1.RoleBinding, *corev1.ServiceAccount) {
	off, meta := false, m.meta(m.Namespace, naming.MemberReconnectAccount)
	role := &rbacv1.Role{ObjectMeta: *meta.DeepCopy(), Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{clusterv1beta1.GroupVersion.Group}, Resources: []string{"internalmemberclusters"},
		ResourceNames: []string{m.Name}, Verbs: []string{"get"},
	}}}
	binding := kube.RoleBinding(*meta.DeepCopy(), "Role", role.Name, kube.AccountSubject(m.Namespace, naming.MemberReconnectAccount))
	account := &corev1.ServiceAccount{ObjectMeta: *meta.DeepCopy(), AutomountServiceAccountToken: &off}
	account.Annotations = e.annotations()
	return role, binding, account
}

// reconnectAccess returns the objects for the agent of a MemberCluster to rejoin by its key. The
// account is first: its deletion invalidates its tokens.
func (m Member) reconnectAccess() []client.Object {
	role, binding, account := m.Reconnect(Exchange{})
	return []client.Object{account, binding, role}
}

// EndReconnect deletes the objects for the agent of a MemberCluster to rejoin by its key.
func (m Member) EndReconnect(ctx context.Context, c client.Client) error {
	return kube.Delete(ctx, c, m.reconnectAccess()...)
}
