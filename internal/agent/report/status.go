package report

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
)

// Names that readers of a report know.
const (
	propertyNodeCount = "kubernetes-fleet.io/node-count"
	propertyVersion   = "k8s.io/k8s-version"

	conditionJoined  = "Joined"
	conditionHealthy = "Healthy"
	// conditionPruned is there, and False, while something that was deleted on the hub cannot be
	// removed.
	conditionPruned = "Pruned"
)

// maxNote is the longest note that is reported.
const maxNote = 1024

// facts is what was observed of the member.
type facts struct {
	summary    summary
	namespaces collection
	version    string
	unhealthy  string
	generation int64
	// left says that the member left, as the hub asked; leaving says how far it is with that.
	left    bool
	leaving string
	// note is what the hub should know beside that the member has joined.
	note string
	// unpruned is what cannot be removed.
	unpruned Unpruned
	// hub is how the agent reaches the hub.
	hub clusterv1beta1.HubInUse
	// credential is the one in use; nil if the agent does not know which it is.
	credential *clusterv1beta1.CredentialInUse
}

// complete says whether all lists are there that a report is made of.
func (f facts) complete() bool {
	return f.summary.listed && f.summary.available != nil && f.namespaces.answered
}

// Unpruned says why something is still on the member that was deleted on the hub;
// empty if nothing is.
type Unpruned struct{ Reason, Message string }

// since is how soon the hub should know what differs from the other facts. A generation alone,
// which the hub knows by itself, and a small change of what is available ride with the next write.
func (f facts) since(other facts) change {
	switch {
	case f.urgent(other):
		return urgent
	case !f.equal(other):
		return changed
	case usageDiffers(f.summary.allocatable, f.summary.available, other.summary.available):
		return usage
	}
	return none
}

// equal compares all but the generation and how much is available.
func (f facts) equal(other facts) bool {
	return f.summary.nodes == other.summary.nodes && f.summary.listed == other.summary.listed &&
		f.version == other.version && f.unhealthy == other.unhealthy && f.left == other.left && f.leaving == other.leaving &&
		f.note == other.note && f.hub == other.hub && equality.Semantic.DeepEqual(f.credential, other.credential) &&
		f.unpruned == other.unpruned &&
		equality.Semantic.DeepEqual(f.summary.capacity, other.summary.capacity) &&
		equality.Semantic.DeepEqual(f.summary.allocatable, other.summary.allocatable) &&
		(f.summary.available == nil) == (other.summary.available == nil) && f.namespaces.equal(other.namespaces)
}

// urgent says whether somebody waits for what is new since the other facts: that the member left,
// reaches the hub elsewhere, cannot do what the hub asks, has another credential, or cannot remove
// what was deleted on the hub. Another message of the same failure can wait.
func (f facts) urgent(other facts) bool {
	hub := f.hub
	if hub.Failure != "" && other.hub.Failure != "" {
		hub.Failure = other.hub.Failure
	}
	return f.left != other.left || (f.leaving == "") != (other.leaving == "") || (f.note == "") != (other.note == "") ||
		f.unpruned.Reason != other.unpruned.Reason || hub != other.hub || !equality.Semantic.DeepEqual(f.credential, other.credential)
}

// status computes the status of the report from the facts. Conditions keep their
// transition times from before.
func (r *Reporter) status(f facts, before []metav1.Condition, now time.Time) clusterv1beta1.InternalMemberClusterStatus {
	at := metav1.NewTime(now)
	properties := map[string]clusterv1beta1.PropertyValue{}
	if f.version != "" {
		properties[propertyVersion] = clusterv1beta1.PropertyValue{Value: f.version, ObservationTime: at}
	}
	status := clusterv1beta1.InternalMemberClusterStatus{
		Properties: properties,
		ResourceUsage: clusterv1beta1.ResourceUsage{
			Capacity: limited(f.summary.capacity), Allocatable: limited(f.summary.allocatable),
			Available: limited(f.summary.available), ObservationTime: at,
		},
		AgentStatus: []clusterv1beta1.AgentStatus{{
			Type: clusterv1beta1.MemberAgent, Conditions: conditions(f, r.Farewell, before, at), LastReceivedHeartbeat: at,
		}},
		KubernetesVersion: f.version,
		AgentVersion:      r.AgentVersion,
		AgentNamespace:    r.AgentNamespace,
		AgentKey:          r.AgentKey,
		Credential:        f.credential,
		Features:          r.Features,
		Hub:               &f.hub,
	}
	if f.namespaces.listed {
		status.Namespaces, status.Conditions = f.namespaces.owners, []metav1.Condition{r.collected(f, at)}
	}
	if f.summary.listed {
		status.Nodes = &clusterv1beta1.NodeSummary{}
		*status.Nodes = f.summary.nodes
		status.Properties[propertyNodeCount] = clusterv1beta1.PropertyValue{
			Value: strconv.Itoa(int(f.summary.nodes.Total)), ObservationTime: at,
		}
	}
	return status
}

// collected says whether all namespaces are in the report.
func (r *Reporter) collected(f facts, at metav1.Time) metav1.Condition {
	c := metav1.Condition{
		Type: clusterv1beta1.ConditionNamespacesCollected, Status: metav1.ConditionTrue, Reason: clusterv1beta1.ReasonNamespacesCollected,
		ObservedGeneration: f.generation, LastTransitionTime: at,
	}
	if f.namespaces.more {
		c.Status, c.Reason = metav1.ConditionFalse, clusterv1beta1.ReasonNamespacesDegraded
		c.Message = fmt.Sprintf("the cluster has more than %d namespaces; the first by name are reported", maxNamespaces)
	}
	if r.collectedBefore.Status == c.Status {
		c.LastTransitionTime = r.collectedBefore.LastTransitionTime
	}
	return c
}

// HasLeft says whether the agent has reported that it left, and the hub still asks for that.
func HasLeft(report *clusterv1beta1.InternalMemberCluster) bool {
	if report.Spec.State != clusterv1beta1.ClusterStateLeave {
		return false
	}
	own := clusterv1beta1.FindAgent(report.Status.AgentStatus, clusterv1beta1.MemberAgent)
	return own != nil && meta.IsStatusConditionFalse(own.Conditions, conditionJoined)
}

func conditions(f facts, farewell string, before []metav1.Condition, at metav1.Time) []metav1.Condition {
	healthy := metav1.Condition{
		Type: conditionHealthy, Status: metav1.ConditionTrue, Reason: reasons.InternalMemberClusterHealthy,
		Message: "the member's API server is ready", ObservedGeneration: f.generation, LastTransitionTime: at,
	}
	if f.unhealthy != "" {
		healthy.Status, healthy.Reason, healthy.Message = metav1.ConditionFalse, reasons.InternalMemberClusterUnhealthy, f.unhealthy
	}
	joined := metav1.Condition{
		Type: conditionJoined, Status: metav1.ConditionTrue, Reason: reasons.InternalMemberClusterJoined,
		Message: "the agent has joined", ObservedGeneration: f.generation, LastTransitionTime: at,
	}
	if f.left {
		joined.Status, joined.Reason = metav1.ConditionFalse, reasons.InternalMemberClusterLeft
		joined.Message = cmp.Or(farewell, "the agent has left, as the hub asked; nothing more is placed on this cluster")
	} else if f.leaving != "" {
		joined.Reason, joined.Message = clusterv1beta1.ReasonLeaving, f.leaving
	} else if f.note != "" {
		joined.Reason, joined.Message = clusterv1beta1.ReasonRegistering, strings.ToValidUTF8(f.note[:min(len(f.note), maxNote)], "")
	}
	current := []metav1.Condition{joined, healthy}
	if f.unpruned.Reason != "" {
		current = append(current, metav1.Condition{
			Type: conditionPruned, Status: metav1.ConditionFalse, Reason: f.unpruned.Reason, Message: f.unpruned.Message,
			ObservedGeneration: f.generation, LastTransitionTime: at,
		})
	}
	for i := range current {
		current[i].Message = kube.Clip(current[i].Message, maxMessage-len("..."))
		if old := meta.FindStatusCondition(before, current[i].Type); old != nil && old.Status == current[i].Status {
			current[i].LastTransitionTime = old.LastTransitionTime
		}
	}
	return current
}
