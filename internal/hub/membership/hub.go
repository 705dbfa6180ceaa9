package membership

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/kube"
)

// Reasons of the condition HubConfigured.
const (
	// ReasonInUse: the agent reaches the hub as the settings say.
	ReasonInUse = "InUse"
	// ReasonMoving: the agent has not moved yet.
	ReasonMoving = "Moving"
	// ReasonAddressUnreachable: the agent tried to move and stays where it is.
	ReasonAddressUnreachable = "AddressUnreachable"
	// ReasonNotVerified: the agent's own settings say that it does not verify the hub.
	ReasonNotVerified = "NotVerified"
	// ReasonAgentTooOld: the agent does not say how it reaches the hub.
	ReasonAgentTooOld = "AgentTooOld"
)

// tlsStrict satisfies every mode, tlsInsecure none.
const (
	tlsStrict   = "strict"
	tlsInsecure = "insecure"
)

// Join is what the hub asks of a member that is in the fleet.
func Join(period time.Duration, hub *clusterv1beta1.HubAddress) clusterv1beta1.InternalMemberClusterSpec {
	return clusterv1beta1.InternalMemberClusterSpec{State: clusterv1beta1.ClusterStateJoin, HeartbeatPeriodSeconds: int32(period.Seconds()), Hub: hub}
}

// Ask writes what the hub asks of an agent into its report. A report that is gone is made anew by whoever noticed that.
func Ask(ctx context.Context, c client.Client, report *clusterv1beta1.InternalMemberCluster, spec clusterv1beta1.InternalMemberClusterSpec) error {
	before := report.DeepCopy()
	report.Spec = spec
	if err := c.Patch(ctx, report, client.MergeFrom(before), kube.FieldOwner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("adjusting InternalMemberCluster %s/%s: %w", report.Namespace, report.Name, err)
	}
	return nil
}

// Reach is all that the condition HubConfigured depends on.
type Reach struct {
	// Desired is how the settings say that the agent should reach the hub; nil if they do not.
	Desired *clusterv1beta1.HubAddress
	// Report of the member; nil if there is none.
	Report *clusterv1beta1.InternalMemberCluster
}

// Asked says whether the report asks for what is desired.
func (r Reach) Asked() bool {
	return r.Report != nil && equality.Semantic.DeepEqual(r.Report.Spec.Hub, r.Desired)
}

// ReachVerdict is what the condition says.
type ReachVerdict struct {
	InUse           bool
	Reason, Message string
}

// InUse is how the agent reaches the hub, nil if it does not say.
func (r Reach) InUse() *clusterv1beta1.HubInUse {
	if r.Report == nil {
		return nil
	}
	return r.Report.Status.Hub
}

// Judge says whether the agent reaches the hub as desired; false if there is nothing to say: the settings name no address, or the
// agent is a legacy one or has not reported yet.
func (r Reach) Judge() (ReachVerdict, bool) {
	if r.Desired == nil || r.Report == nil || r.Report.Status.AgentVersion == "" {
		return ReachVerdict{}, false
	}
	used := r.InUse()
	if used == nil {
		return ReachVerdict{Reason: ReasonAgentTooOld, Message: fmt.Sprintf(
			"the agent, version %s, does not say how it reaches the hub and cannot be moved: upgrade it", r.Report.Status.AgentVersion)}, true
	}
	url, ca := cmp.Or(r.Desired.APIServerURL, used.APIServerURL), used.APIServerCAHash
	if r.Desired.APIServerCA != "" {
		ca = credential.CAHash([]byte(r.Desired.APIServerCA))
	}
	current, wanted := describeAddress(used.APIServerURL, used.APIServerCAHash), describeAddress(url, ca)
	switch arrived := url == used.APIServerURL && ca == used.APIServerCAHash; {
	case arrived && used.AgentTLSMode == tlsInsecure:
		return ReachVerdict{Reason: ReasonNotVerified, Message: fmt.Sprintf(
			"the agent uses %s and does not verify who answers there: set tlsClientInsecure=false in the values of its chart", current)}, true
	case arrived && r.modeSatisfied(used.AgentTLSMode):
		return ReachVerdict{InUse: true, Reason: ReasonInUse, Message: "the agent uses " + current}, true
	case used.Failure != "" && used.ObservedGeneration == r.Report.Generation && r.Asked():
		return ReachVerdict{Reason: ReasonAddressUnreachable, Message: used.Failure}, true
	case !r.Asked():
		return ReachVerdict{Reason: ReasonMoving, Message: fmt.Sprintf("the agent uses %s; its turn to move to %s is to come", current, wanted)}, true
	}
	return ReachVerdict{Reason: ReasonMoving, Message: fmt.Sprintf("the agent uses %s and was asked to move to %s, agentTLSMode %s",
		current, wanted, r.Desired.AgentTLSMode)}, true
}

func (r Reach) modeSatisfied(used string) bool {
	return r.Desired.AgentTLSMode == "" || used == r.Desired.AgentTLSMode || used == tlsStrict
}

// EventOfMove is the type of the event that tells of a new reason, or "": the steps in between are no news.
func EventOfMove(reason string) string {
	switch reason {
	case ReasonInUse:
		return corev1.EventTypeNormal
	case ReasonAddressUnreachable, ReasonAgentTooOld, ReasonNotVerified:
		return corev1.EventTypeWarning
	}
	return ""
}

// describeAddress names an address so that a person can tell two apart.
func describeAddress(url, caHash string) string {
	return fmt.Sprintf("%s (apiServerCAHash %.12s)", url, caHash)
}
