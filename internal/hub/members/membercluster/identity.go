package membercluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/naming"
)

const (
	// indexIdentity finds MemberClusters by their identity.
	indexIdentity = "member.identity"
	// builtIn is the prefix of Kubernetes' own names, accountName the prefix of ServiceAccounts among
	// them.
	builtIn     = "system:"
	accountName = "system:serviceaccount:"
)

// accountOf returns the ServiceAccount of a subject, also if the subject is a User.
func accountOf(s rbacv1.Subject) (account types.NamespacedName, is bool) {
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		return types.NamespacedName{Namespace: s.Namespace, Name: s.Name}, true
	case rbacv1.UserKind:
		rest, is := strings.CutPrefix(s.Name, accountName)
		namespace, name, _ := strings.Cut(rest, ":")
		return types.NamespacedName{Namespace: namespace, Name: name}, is
	}
	return types.NamespacedName{}, false
}

// identityKey returns the same key for all ways to write one identity.
func identityKey(s rbacv1.Subject) string {
	if account, is := accountOf(s); is {
		return rbacv1.UserKind + " " + accountName + account.Namespace + ":" + account.Name
	}
	return s.Kind + " " + s.Name
}

// identityProblem returns the fault in the spec's identity, or "". The hub's own accounts are in
// the system namespace.
func identityProblem(s rbacv1.Subject, systemNamespace string) string {
	const instead = "name a ServiceAccount or a User that only this cluster has"
	account, isAccount := accountOf(s)
	switch {
	case s.Kind != rbacv1.ServiceAccountKind && s.Kind != rbacv1.UserKind && s.Kind != rbacv1.GroupKind:
		return fmt.Sprintf("spec.identity.kind is %q: want ServiceAccount or User", s.Kind)
	case s.Name == "":
		return "spec.identity.name is empty"
	case s.Kind == rbacv1.ServiceAccountKind && s.Namespace == "":
		return fmt.Sprintf("spec.identity.namespace is empty: set the namespace of ServiceAccount %s, for example fleet-system", s.Name)
	case s.Kind == rbacv1.ServiceAccountKind && s.APIGroup != "":
		return fmt.Sprintf("spec.identity.apiGroup is %q: it is empty for a ServiceAccount", s.APIGroup)
	case isAccount && (len(validation.IsDNS1123Label(account.Namespace)) > 0 || len(validation.IsDNS1123Subdomain(account.Name)) > 0):
		return fmt.Sprintf("spec.identity is %s %s, which names no ServiceAccount: want system:serviceaccount:NAMESPACE:NAME", s.Kind, s.Name)
	case isAccount && (slices.Contains(reserved, account.Namespace) || isHubs(account, systemNamespace)):
		return fmt.Sprintf("spec.identity is %s %s, an account of Kubernetes or of the hub itself in namespace %s: %s",
			s.Kind, s.Name, account.Namespace, instead)
	case !isAccount && strings.HasPrefix(s.Name, builtIn):
		return fmt.Sprintf("spec.identity is %s %s, a name of Kubernetes itself or of many users: %s", s.Kind, s.Name, instead)
	case s.Kind == rbacv1.GroupKind:
		return fmt.Sprintf("spec.identity is Group %s, which can have many members: %s", s.Name, instead)
	}
	return ""
}

// reserved lists the namespaces with only Kubernetes' own accounts.
var reserved = []string{metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease}

// isHubs reports whether an account is the hub's. In its namespace all are, unless members have
// identities there.
func isHubs(account types.NamespacedName, systemNamespace string) bool {
	return account.Namespace == systemNamespace &&
		(systemNamespace != naming.MemberSystemNamespace || strings.HasPrefix(account.Name, naming.HubServiceAccount))
}

// identityHolder names an older MemberCluster with the same identity, or returns "".
func (c *Controller) identityHolder(ctx context.Context, mc *clusterv1beta1.MemberCluster) (string, error) {
	var list clusterv1beta1.MemberClusterList
	if err := c.Client.List(ctx, &list, client.MatchingFields{indexIdentity: identityKey(mc.Spec.Identity)},
		client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("listing the MemberClusters with %s: %w", identityKey(mc.Spec.Identity), err)
	}
	first := mc
	for i := range list.Items {
		if other := &list.Items[i]; madeBefore(other, first) {
			first = other
		}
	}
	if first.UID == mc.UID {
		return "", nil
	}
	return "MemberCluster " + first.Name, nil
}

func madeBefore(a, b *clusterv1beta1.MemberCluster) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}

// agentOf names the membership object with a ServiceAccount for its agent, or returns "".
func agentOf(account client.Object) string {
	if membership.IssuedTo(account) == "" {
		return ""
	}
	if owner := metav1.GetControllerOf(account); owner != nil {
		return owner.Kind + " " + owner.Name
	}
	key, _ := membership.RecordOf(account)
	return "Cluster " + key.String()
}

// onIdentity enqueues the other MemberClusters with an identity just gained or lost by one
// MemberCluster.
func (c *Controller) onIdentity(ctx context.Context, before, after *clusterv1beta1.MemberCluster, q controller.Queue) {
	if before != nil && after != nil && identityKey(before.Spec.Identity) == identityKey(after.Spec.Identity) {
		return
	}
	for _, changed := range []*clusterv1beta1.MemberCluster{before, after} {
		if changed == nil {
			continue
		}
		var list clusterv1beta1.MemberClusterList
		if err := c.Client.List(ctx, &list, client.MatchingFields{indexIdentity: identityKey(changed.Spec.Identity)},
			client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Failed to list the MemberClusters with an identity", "identity", identityKey(changed.Spec.Identity))
		}
		for i := range list.Items {
			if other := &list.Items[i]; other.Name != changed.Name {
				q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(other)})
			}
		}
	}
}
