package membernamespace

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/fleet/agentroles"
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

// Reconnect returns an account and a RoleBinding for rejoining a MemberCluster. With this account,
// an agent with an expired credential may read its own report, and nothing else. The ClusterRole
// names no report: the member namespace has only one.
func (m Member) Reconnect(e Exchange) (*rbacv1.RoleBinding, *corev1.ServiceAccount) {
	binding := kube.RoleBinding(m.meta(m.Namespace, agentroles.ReconnectRole), "ClusterRole", agentroles.ReconnectRole,
		kube.AccountSubject(m.Namespace, naming.MemberReconnectAccount))
	off := false
	account := &corev1.ServiceAccount{ObjectMeta: m.meta(m.Namespace, naming.MemberReconnectAccount), AutomountServiceAccountToken: &off}
	account.Annotations = e.annotations()
	return binding, account
}

// EarlierReconnect returns the names of the RoleBinding and the Role with the same right for the
// account, from a hub of an earlier version.
func (m Member) EarlierReconnect() []client.Object {
	meta := m.meta(m.Namespace, naming.MemberReconnectAccount)
	return []client.Object{&rbacv1.RoleBinding{ObjectMeta: *meta.DeepCopy()}, &rbacv1.Role{ObjectMeta: meta}}
}

// reconnectAccess returns the objects for the agent of a MemberCluster to rejoin by its key. The
// account is first: its deletion invalidates its tokens.
func (m Member) reconnectAccess() []client.Object {
	binding, account := m.Reconnect(Exchange{})
	return append([]client.Object{account, binding}, m.EarlierReconnect()...)
}

// EndReconnect deletes the objects for the agent of a MemberCluster to rejoin by its key.
func (m Member) EndReconnect(ctx context.Context, c client.Client) error {
	return kube.Delete(ctx, c, m.reconnectAccess()...)
}
