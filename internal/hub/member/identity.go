package member

import (
	"context"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/controller"
	"github.com/muster-fleet/muster/internal/hub/membership"
)

const (
	// indexIdentity finds MemberClusters by their identity.
	indexIdentity = "member.identity"
	// builtIn is the prefix of the names that are Kubernetes' own, accountName that of ServiceAccounts among them.
	builtIn     = "system:"
	accountName = "system:serviceaccount:"
)

// identityKey is the same for all ways to write one identity: a ServiceAccount is a User, too.
func identityKey(s rbacv1.Subject) string {
	if s.Kind == rbacv1.ServiceAccountKind {
		return rbacv1.UserKind + " " + accountName + s.Namespace + ":" + s.Name
	}
	return s.Kind + " " + s.Name
}

// identityProblem returns what is wrong with the identity that a record asks for, or "".
func identityProblem(s rbacv1.Subject) string {
	switch {
	case s.Kind != rbacv1.ServiceAccountKind && s.Kind != rbacv1.UserKind && s.Kind != rbacv1.GroupKind:
		return fmt.Sprintf("spec.identity.kind is %q: want ServiceAccount, User or Group", s.Kind)
	case s.Name == "":
		return "spec.identity.name is empty"
	case s.Kind == rbacv1.ServiceAccountKind && s.Namespace == "":
		return fmt.Sprintf("spec.identity.namespace is empty: say in which namespace ServiceAccount %s is, for example fleet-system", s.Name)
	case s.Kind == rbacv1.ServiceAccountKind && s.APIGroup != "":
		return fmt.Sprintf("spec.identity.apiGroup is %q: it is empty for a ServiceAccount", s.APIGroup)
	case s.Kind == rbacv1.UserKind && strings.HasPrefix(s.Name, accountName):
	case s.Kind != rbacv1.ServiceAccountKind && strings.HasPrefix(s.Name, builtIn):
		return fmt.Sprintf("spec.identity is %s %s, by which Kubernetes means many or one of its own: name a ServiceAccount or a User that only this cluster has", s.Kind, s.Name)
	}
	return ""
}

// identityHolder names the MemberCluster that asks for the same identity and is older, or is "".
func (c *Controller) identityHolder(ctx context.Context, mc *clusterv1beta1.MemberCluster) (string, error) {
	var list clusterv1beta1.MemberClusterList
	if err := c.Client.List(ctx, &list, client.MatchingFields{indexIdentity: identityKey(mc.Spec.Identity)}, client.UnsafeDisableDeepCopy); err != nil {
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

// agentOf names the Cluster to whose agent a ServiceAccount was issued, or is "".
func agentOf(account client.Object) string {
	if membership.IssuedTo(account) == "" {
		return ""
	}
	key, _ := membership.RecordOf(account)
	return "Cluster " + key.String()
}

// onIdentity reconciles the other MemberClusters with the identity that one begins or ceases to have.
func (c *Controller) onIdentity(ctx context.Context, before, after *clusterv1beta1.MemberCluster, q controller.Queue) {
	if before != nil && after != nil && identityKey(before.Spec.Identity) == identityKey(after.Spec.Identity) {
		return
	}
	for _, changed := range []*clusterv1beta1.MemberCluster{before, after} {
		if changed == nil {
			continue
		}
		var list clusterv1beta1.MemberClusterList
		if err := c.Client.List(ctx, &list, client.MatchingFields{indexIdentity: identityKey(changed.Spec.Identity)}, client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Listing the MemberClusters with an identity", "identity", identityKey(changed.Spec.Identity))
		}
		for i := range list.Items {
			if other := &list.Items[i]; other.Name != changed.Name {
				q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(other)})
			}
		}
	}
}
