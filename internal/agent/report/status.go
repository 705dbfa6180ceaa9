package report

import (
	"cmp"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleetfacts "github.com/muster-fleet/muster/internal/fleet/facts"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
)

// Names known to readers of a report.
const (
	conditionJoined  = "Joined"
	conditionHealthy = "Healthy"
	// conditionPruned exists, with status False, while an object deleted on the hub is still on the
	// member.
	conditionPruned = "Pruned"
)

// maxNote is the length limit of a reported note.
const maxNote = 1024

// facts are the observations of the member.
type facts struct {
	summary    summary
	namespaces collection
	// custom are the facts reported by users of the member.
	custom     customFacts
	version    string
	unhealthy  string
	generation int64
	// left is set once the member has left at the request of the hub; leaving is the progress before.
	left    bool
	leaving string
	// note is further information for the hub besides the join.
	note string
	// unpruned names objects that could not be removed.
	unpruned Unpruned
	// hub is the agent's connection to the hub.
	hub clusterv1beta1.HubInUse
	// credential is the credential in use; nil if it is unknown to the agent.
	credential *clusterv1beta1.CredentialInUse
	// refused is the term obeyed by a member that refuses the hub; nil if it obeys the hub.
	refused *clusterv1beta1.HubTerm
}

// complete reports whether all lists for a report are present.
func (f facts) complete() bool {
	return f.summary.listed && f.summary.available != nil && f.namespaces.answered && f.custom.answered
}

// Unpruned is the reason why objects deleted on the hub are still on the member; empty if there are
// none.
type Unpruned struct{ Reason, Message string }

// since returns the urgency of the difference from the other facts. A new generation and a small
// change of available resources wait for the next write; the hub knows the generation itself.
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

// equal compares all facts except the generation and the available amounts.
func (f facts) equal(other facts) bool {
	return f.summary.nodes == other.summary.nodes && f.summary.listed == other.summary.listed &&
		maps.Equal(f.summary.facts, other.summary.facts) && maps.Equal(f.custom.values, other.custom.values) &&
		f.version == other.version && f.unhealthy == other.unhealthy && f.left == other.left && f.leaving == other.leaving &&
		f.note == other.note && f.hub == other.hub && equality.Semantic.DeepEqual(f.credential, other.credential) &&
		equality.Semantic.DeepEqual(f.refused, other.refused) &&
		f.unpruned == other.unpruned &&
		equality.Semantic.DeepEqual(f.summary.capacity, other.summary.capacity) &&
		equality.Semantic.DeepEqual(f.summary.allocatable, other.summary.allocatable) &&
		(f.summary.available == nil) == (other.summary.available == nil) && f.namespaces.equal(other.namespaces)
}

// urgent reports whether the hub or a user waits for the difference from the other facts. Urgent
// are a departure, another connection to the hub, an unfulfilled request, and another credential.
//
// Objects that could not be removed are urgent, too. Another message of the same failure can wait.
func (f facts) urgent(other facts) bool {
	hub := f.hub
	if hub.Failure != "" && other.hub.Failure != "" {
		hub.Failure = other.hub.Failure
	}
	return f.left != other.left || (f.leaving == "") != (other.leaving == "") || (f.note == "") != (other.note == "") ||
		f.unpruned.Reason != other.unpruned.Reason || hub != other.hub || !equality.Semantic.DeepEqual(f.credential, other.credential) ||
		!equality.Semantic.DeepEqual(f.refused, other.refused)
}

// status computes the status of the report from the facts. Conditions keep their transition times
// from before.
func (r *Reporter) status(f facts, before []metav1.Condition, now time.Time) clusterv1beta1.InternalMemberClusterStatus {
	timestamp := metav1.NewTime(now)
	status := clusterv1beta1.InternalMemberClusterStatus{
		Properties: properties(f, timestamp),
		ResourceUsage: clusterv1beta1.ResourceUsage{
			Capacity: limited(f.summary.capacity), Allocatable: limited(f.summary.allocatable),
			Available: limited(f.summary.available), ObservationTime: timestamp,
		},
		AgentStatus: []clusterv1beta1.AgentStatus{{
			Type: clusterv1beta1.MemberAgent, Conditions: conditions(f, r.Farewell, before, timestamp), LastReceivedHeartbeat: timestamp,
		}},
		KubernetesVersion: f.version,
		AgentVersion:      r.AgentVersion,
		AgentNamespace:    r.AgentNamespace,
		AgentKey:          r.AgentKey,
		Credential:        f.credential,
		HubTerm:           f.refused,
		Features:          r.Features,
		Hub:               &f.hub,
	}
	if f.namespaces.listed {
		status.Namespaces, status.Conditions = f.namespaces.owners, []metav1.Condition{r.collected(f, timestamp)}
	}
	if f.summary.listed {
		status.Nodes = &clusterv1beta1.NodeSummary{}
		*status.Nodes = f.summary.nodes
	}
	return status
}

// properties returns the facts of the member by name. The agent's own take precedence.
func properties(f facts, observed metav1.Time) map[string]clusterv1beta1.PropertyValue {
	values := map[string]string{}
	maps.Copy(values, f.custom.values)
	maps.Copy(values, f.summary.facts)
	values[fleetfacts.KubernetesVersion] = f.version
	values[fleetfacts.Distribution] = distributionOf(f.version, f.summary.facts[fleetfacts.Distribution])
	if f.summary.listed {
		values[fleetfacts.NodeCount] = strconv.Itoa(int(f.summary.nodes.Total))
	}
	reported := map[string]clusterv1beta1.PropertyValue{}
	for name, value := range values {
		if value != "" {
			reported[name] = clusterv1beta1.PropertyValue{Value: value, ObservationTime: observed}
		}
	}
	return reported
}

// collected returns the condition that reports whether all namespaces are in the report.
func (r *Reporter) collected(f facts, timestamp metav1.Time) metav1.Condition {
	c := metav1.Condition{
		Type: clusterv1beta1.ConditionNamespacesCollected, Status: metav1.ConditionTrue, Reason: clusterv1beta1.ReasonNamespacesCollected,
		ObservedGeneration: f.generation, LastTransitionTime: timestamp,
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

// HasLeft reports whether the agent has reported its departure, and the hub still requests it.
func HasLeft(report *clusterv1beta1.InternalMemberCluster) bool {
	if report.Spec.State != clusterv1beta1.ClusterStateLeave {
		return false
	}
	own := clusterv1beta1.FindAgent(report.Status.AgentStatus, clusterv1beta1.MemberAgent)
	return own != nil && meta.IsStatusConditionFalse(own.Conditions, conditionJoined)
}

func conditions(f facts, farewell string, before []metav1.Condition, timestamp metav1.Time) []metav1.Condition {
	healthy := metav1.Condition{
		Type: conditionHealthy, Status: metav1.ConditionTrue, Reason: reasons.InternalMemberClusterHealthy,
		Message: "the member's API server is ready", ObservedGeneration: f.generation, LastTransitionTime: timestamp,
	}
	if f.unhealthy != "" {
		healthy.Status, healthy.Reason, healthy.Message = metav1.ConditionFalse, reasons.InternalMemberClusterUnhealthy, f.unhealthy
	}
	joined := metav1.Condition{
		Type: conditionJoined, Status: metav1.ConditionTrue, Reason: reasons.InternalMemberClusterJoined,
		Message: "the agent has joined", ObservedGeneration: f.generation, LastTransitionTime: timestamp,
	}
	if f.left {
		joined.Status, joined.Reason = metav1.ConditionFalse, reasons.InternalMemberClusterLeft
		joined.Message = cmp.Or(farewell, "the agent has left, as requested by the hub; the hub places nothing more on this cluster")
	} else if f.leaving != "" {
		joined.Reason, joined.Message = clusterv1beta1.ReasonLeaving, f.leaving
	} else if f.note != "" {
		joined.Reason, joined.Message = clusterv1beta1.ReasonRegistering, strings.ToValidUTF8(f.note[:min(len(f.note), maxNote)], "")
	}
	current := []metav1.Condition{joined, healthy}
	if f.unpruned.Reason != "" {
		current = append(current, metav1.Condition{
			Type: conditionPruned, Status: metav1.ConditionFalse, Reason: f.unpruned.Reason, Message: f.unpruned.Message,
			ObservedGeneration: f.generation, LastTransitionTime: timestamp,
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
