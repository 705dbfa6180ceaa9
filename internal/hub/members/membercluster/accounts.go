package membercluster

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
)

// newAccountCache returns a cache of the ServiceAccounts created by others. Through it, the hub
// notices the creation and deletion of a member's account. The cache keeps names and UIDs, and
// leaves out the accounts common to every namespace.
func newAccountCache(ctx context.Context, mgr ctrl.Manager) (cache.Cache, error) {
	foreign, err := labels.NewRequirement(fleet.LabelManaged, selection.NotEquals, []string{"true"})
	if err != nil {
		return nil, err
	}
	return controller.NewCache(ctx, mgr, "the ServiceAccounts of members", map[client.Object]cache.ByObject{
		kube.CoreMetadata("ServiceAccount"): {
			Label:     labels.NewSelector().Add(*foreign),
			Field:     fields.OneTermNotEqualSelector(metav1.ObjectNameField, "default"),
			Transform: controller.OnlyIdentity,
		},
	})
}

// readAccount returns a ServiceAccount, nil if there is none. Only the API server's answer proves
// its absence: deleting the account of a member ends the member's access.
func (c *Controller) readAccount(ctx context.Context, key types.NamespacedName) (*metav1.PartialObjectMetadata, error) {
	account := kube.CoreMetadata("ServiceAccount")
	for _, reader := range []client.Reader{c.accounts, c.Client, c.Live} {
		err := reader.Get(ctx, key, account)
		if err == nil {
			return account, nil
		}
		if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("reading ServiceAccount %s: %w", key, err)
		}
	}
	return nil, nil
}

// onAccount enqueues the MemberClusters with a created or deleted ServiceAccount as identity.
func (c *Controller) onAccount(ctx context.Context, before, after client.Object, q controller.Queue) {
	account := after
	if before != nil && after != nil && before.GetUID() == after.GetUID() {
		return
	}
	if after == nil {
		account = before
	}
	var list clusterv1beta1.MemberClusterList
	key := identityKey(rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: account.GetNamespace(), Name: account.GetName()})
	if err := c.Client.List(ctx, &list, client.MatchingFields{indexIdentity: key}, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list the MemberClusters with an identity", "identity", key)
	}
	for i := range list.Items {
		q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
}
