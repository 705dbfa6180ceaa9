package membercluster

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/credentials/renewal"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/kube"
)

// An agent rejoins by its key if its credential expired while its cluster was disconnected. The
// agent needs:
//
//   - A token of the account agent-reconnect of its member namespace. It comes with each
//     credential, sealed in the same way. The account may get the report of its own member, nothing
//     else.
//   - The private half of the pinned key, to open the credential in the report. While the member
//     sends no heartbeats, the hub replaces that credential twice in its life.
//
// The hub creates the account for the same key and identity as the account of the credential. This
// account ends with the account of the credential.

// reconnectLife is the longest disconnection before a cluster can no longer rejoin by its key. The
// API server may grant the token less.
const reconnectLife = 365 * 24 * time.Hour

// reconnectFits reports whether the agent may rejoin by its key: the accounts are for the current
// key and identity of the MemberCluster.
func (o observed) reconnectFits() bool {
	return o.accountFits() && o.exchange().Made(o.reconnect)
}

// isAwaited reports whether the agent sends no heartbeats and may still rejoin by its key.
func (o observed) isAwaited(now time.Time) bool {
	return !o.takesCredentials() && o.reconnectFits() && now.Before(o.LastSeen().Add(reconnectLife))
}

// afterExpiry describes how a cluster can rejoin after its credential has expired.
func (o observed) afterExpiry() string {
	if o.reconnectFits() {
		return "comes back by that key, within a year"
	}
	return "needs a new token"
}

// keepsReconnect reports whether the agent stores the token for rejoining.
func keepsReconnect(report *clusterv1beta1.InternalMemberCluster) bool {
	return slices.Contains(report.Status.Features, clusterv1beta1.FeatureReconnect)
}

// endReconnect deletes the access for rejoining if the agent's key or identity is no longer the
// current one, or an administrator has ended its credentials.
func (r *reconciliation) endReconnect(ctx context.Context) error {
	if r.o.reconnect.UID == "" || r.o.reconnectFits() {
		return nil
	}
	return r.o.EndReconnect(ctx, r.Client)
}

// reconnectToken returns a token to let the agent of a member rejoin. Membership does not depend on
// the token, so reconnectToken logs a failure and returns "".
func (c *Controller) reconnectToken(ctx context.Context, s *renewal.State) string {
	if s.Report == nil || !keepsReconnect(s.Report) {
		return ""
	}
	token, err := c.issueReconnect(ctx, s)
	switch {
	case err == nil:
		c.reconnectFails.Store(false)
	case ctx.Err() == nil && !c.reconnectFails.Swap(true):
		ctrl.LoggerFrom(ctx).Info("Agents of MemberClusters with an expired credential cannot return with their key", "namespace",
			s.Namespace, "reason", err.Error())
	}
	return token
}

// issueReconnect creates the account and its rights, if missing, and issues a token.
func (c *Controller) issueReconnect(ctx context.Context, s *renewal.State) (string, error) {
	exchanged, err := s.ReadAccount(ctx, c.Client)
	if err != nil {
		return "", err
	}
	if s.Exchange.Unpinned(exchanged) {
		if err := s.Exchange.PinIdentity(ctx, c.Client, exchanged); err != nil {
			return "", err
		}
	}
	binding, account := s.Reconnect(s.Exchange)
	missing, err := kube.Missing(ctx, c.Client, kube.MetadataOf(c.Client.Scheme()), binding, account)
	if err != nil {
		return "", err
	}
	if err := kube.Ensure(ctx, c.Client, missing...); err != nil {
		return "", err
	}
	if err := c.endEarlierReconnect(ctx, s.Member); err != nil {
		return "", err
	}
	token, err := kube.RequestToken(ctx, c.Client.SubResource("token"), account, reconnectLife)
	if !apierrors.IsNotFound(err) {
		return token, err
	}
	// The cache still shows a deleted account.
	binding, account = s.Reconnect(s.Exchange)
	if err := kube.Ensure(ctx, c.Client, binding, account); err != nil {
		return "", err
	}
	return kube.RequestToken(ctx, c.Client.SubResource("token"), account, reconnectLife)
}

// restoreReconnect resets the right of the account after a deletion or an edit since this process
// first saw it. The same right from a hub of an earlier version stays until then, or until the next
// credential. An upgrade therefore does not write for all members at once.
func (c *Controller) restoreReconnect(ctx context.Context, o observed) error {
	if !o.reconnectFits() {
		c.reconnectRights.Forget(o.Namespace)
		return nil
	}
	binding, _ := o.Reconnect(o.exchange())
	earlier := o.EarlierReconnect()
	seen, shown, err := kube.Shown(ctx, c.Client, binding.Subjects, append([]client.Object{binding}, earlier...)...)
	if err != nil {
		return err
	}
	isShown := slices.ContainsFunc(shown, func(have client.Object) bool { return have.GetName() == binding.Name })
	if c.reconnectRights.Of(o.Namespace, seen) == seen && (isShown || len(shown) == len(earlier)) {
		return nil
	}
	if err := kube.Ensure(ctx, c.Client, binding); err != nil {
		return err
	}
	if err := c.endEarlierReconnect(ctx, o.Member); err != nil {
		return err
	}
	c.reconnectRights.Set(o.Namespace, seen.At(binding))
	return nil
}

// endEarlierReconnect deletes the RoleBinding and the Role of the account from a hub of an earlier
// version, if the cache shows them. The account has its right by another RoleBinding already.
func (c *Controller) endEarlierReconnect(ctx context.Context, m membernamespace.Member) error {
	earlier, err := membernamespace.Known(ctx, c.Client, c.Client.Scheme(), m.EarlierReconnect())
	if err != nil || len(earlier) == 0 {
		return err
	}
	c.reconnectRights.Forget(m.Namespace)
	return kube.Delete(ctx, c.Client, earlier...)
}
