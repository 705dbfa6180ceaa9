package cluster

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/members/liveness"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/kube"
)

// When an agent of Muster's replaces a Rancher Fleet agent, or the other way round, the new agent
// may take over the credential. The credential proves the identity of the cluster. The place of the
// heartbeats decides about the acting agent:
//
//	          status.agent.account is the account's UID, or the Lease is renewed
//	legacy ◄────────────────────────────────────────────────────────────────────► native
//	          status.agent.lastSeen is written without an account

// sharedPeriod is the shortest heartbeat period of an agent that a Rancher Fleet agent may replace.
// The successor waits for up to 30 s until it leads, and for 15 s before its first heartbeat.
const sharedPeriod = 30 * time.Second

// account holds the facts about a member's ServiceAccount and its agents.
type account struct {
	uid     types.UID
	created time.Time
	// issuedTo is the kind of agent with the first grant of the account, recorded the kind noted on
	// the account as acting.
	issuedTo, recorded membership.AgentKind
	// shared: an agent of Muster's has taken over the credential of a Rancher Fleet agent.
	shared bool
	// request is the registration request with the grant of the account, requestUID its UID.
	request    string
	requestUID types.UID
}

// acting returns the kind of the acting agent of a Cluster, derived from the status and the source
// of heartbeats.
func acting(a account, agent fleet.AgentStatus, beats liveness.Source) membership.AgentKind {
	switch {
	case a.issuedTo != membership.Legacy:
		return a.issuedTo
	case a.uid != "" && agent.Account == string(a.uid):
		return membership.Native
	case !a.shared:
		return membership.Legacy
	case beats == liveness.InLease:
		return membership.Native
	case beats == "" && agent.LastSeen.IsZero():
		return a.recorded
	}
	return membership.Legacy
}

// readAccount reads the member's ServiceAccount; the result is zero if there is none.
func (c *Controller) readAccount(ctx context.Context, member membernamespace.Member) (account, error) {
	metadata, err := member.ReadAccount(ctx, c.Client)
	if err != nil {
		return account{}, err
	}
	return account{
		uid: metadata.UID, created: metadata.CreationTimestamp.Time, issuedTo: membership.IssuedTo(metadata),
		recorded: membership.KindOf(metadata), shared: membership.Shared(metadata),
		request: metadata.Annotations[fleet.AnnotationRegistration], requestUID: membernamespace.IssuedForUID(metadata),
	}, nil
}

// isLegacyBeat reports whether a Rancher Fleet agent wrote status.agent.
func isLegacyBeat(a account, agent fleet.AgentStatus) bool {
	return a.issuedTo == membership.Legacy && agent.Account != string(a.uid) && !agent.LastSeen.IsZero()
}

// handOver grants another kind of agent its rights, and then notes it on the account as acting.
func (c *Controller) handOver(ctx context.Context, o *observed) error {
	if o.account.issuedTo != membership.Legacy || o.account.recorded == o.agent {
		return nil
	}
	o.account.shared = true
	if err := c.restore(ctx, o, o.asks(c.period(o, 0), o.Hub)); err != nil {
		return err
	}
	account := o.Account()
	account.UID = o.account.uid
	err := membernamespace.HandOver(ctx, c.Client, account, o.agent)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // the event of the account's replacement reconciles this Cluster again
	}
	if err == nil {
		ctrl.LoggerFrom(ctx).Info("Another agent acts with the credential of the member", "from", o.account.recorded, "to", o.agent)
	}
	return err
}

// identity returns the identity of the member's agent.
func (o observed) identity() membernamespace.Identity {
	return membernamespace.Identity{
		Member: o.Member, Kind: o.agent, Shared: o.account.shared, RenewsItself: o.agent == membership.Native && o.credential.Key == "",
		Quarantined: o.Quarantined,
	}
}

// dropReport empties the report of Muster's agent after a Rancher Fleet agent has replaced it,
// because the new agent writes no report.
func (c *Controller) dropReport(ctx context.Context, report *clusterv1beta1.InternalMemberCluster) error {
	if report == nil || equality.Semantic.DeepEqual(report.Status, clusterv1beta1.InternalMemberClusterStatus{}) {
		return nil
	}
	patch := fmt.Sprintf(`{"metadata":{"uid":%q},"status":null}`, report.UID)
	err := c.Client.Status().Patch(ctx, report.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)), kube.FieldOwner)
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("emptying the report of %s/%s: %w", report.Namespace, report.Name, err)
	}
	return nil
}

// pinKey pins the agent's reported key to the Cluster if the agent registered without a key. Agents
// of earlier versions and of Rancher Fleet do. An existing annotation stays, even an empty one: a
// user has then approved an agent without a key.
func (c *Controller) pinKey(ctx context.Context, cluster *fleet.Cluster, o *observed) error {
	_, pinned := cluster.Annotations[fleet.AnnotationAgentKey]
	if pinned || o.agent != membership.Native || o.Report == nil || !credential.ValidAgentKey(o.Report.Status.AgentKey) {
		return nil
	}
	o.credential.Key = credential.Fingerprint(o.Report.Status.AgentKey)
	before := cluster.DeepCopy()
	metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, fleet.AnnotationAgentKey, o.credential.Key)
	if err := kube.Patch(ctx, c.Client, before, cluster); err != nil {
		return fmt.Errorf("pinning the key of the agent to Cluster %s/%s: %w", cluster.Namespace, cluster.Name, err)
	}
	return nil
}
