package cli

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/membership"
	"github.com/muster-fleet/muster/internal/kube"
)

// nothing stands in a column that says nothing.
const nothing = "-"

// States of what has no words of its own for them.
const (
	stateReady    = "Ready"
	stateNotReady = "NotReady"
	stateLeaving  = "Leaving"
	stateDeleting = "Deleting"
	stateNew      = "New" // the hub has not looked at it yet
)

var (
	memberColumns = []string{"NAME", "KIND", "STATE", "NODES", "BUNDLES", "VERSION", "LAST-SEEN", "AGENT", "EXPIRES", "WHY"}
	memberWide    = []string{"AGENT", "EXPIRES"}
)

func clusterRow(record *fleet.Cluster, now time.Time) []string {
	status := membership.ClusterStatus(&record.Status, nil)
	agent := record.Status.Agent
	return []string{
		nameOf(record), "Cluster", memberState(record, status), or(record.Status.Display.ReadyNodes), or(record.Status.Display.ReadyBundles), or(agent.KubernetesVersion),
		lastSeen(status, agent.LastSeen.Time, now), or(agent.Version), until(expiresOf(record), now), why(status.Ready, status.Message),
	}
}

func memberClusterRow(record *clusterv1beta1.MemberCluster, now time.Time) []string {
	status := membership.MemberClusterStatus(&record.Status)
	message := status.Message
	for _, kind := range []string{clusterv1beta1.ConditionJoined, clusterv1beta1.ConditionReadyToJoin} { // what has to be so first says most
		if c := meta.FindStatusCondition(record.Status.Conditions, kind); c != nil && c.Status == metav1.ConditionFalse {
			message = c.Message
		}
	}
	var seen time.Time
	for _, agent := range record.Status.AgentStatus {
		if agent.LastReceivedHeartbeat.After(seen) {
			seen = agent.LastReceivedHeartbeat.Time
		}
	}
	property := func(name string) string { return or(record.Status.Properties[name].Value) }
	return []string{
		nameOf(record), "MemberCluster", memberState(record, status), property("kubernetes-fleet.io/node-count"), nothing, property("k8s.io/k8s-version"),
		lastSeen(status, seen, now), nothing, until(expiresOf(record), now), why(status.Ready, message),
	}
}

// expiresOf is when the credential of a member's agent ends, as its record says.
func expiresOf(record client.Object) *metav1.Time {
	switch o := record.(type) {
	case *fleet.Cluster:
		if o.Status.Credential != nil {
			return o.Status.Credential.Expires
		}
	case *clusterv1beta1.MemberCluster:
		if o.Status.Credential != nil {
			return o.Status.Credential.Expires
		}
	}
	return nil
}

// lastSeen is how old the heartbeat is that a record shows. In a large fleet that may be an hour while the member is well, so of one that is online, as the hub
// judges, it says that.
func lastSeen(status membership.Status, at, now time.Time) string {
	switch status.Agent {
	case membership.AgentOnline, membership.AgentUnhealthy:
		return "online"
	}
	return since(at, now)
}

func memberState(record client.Object, status membership.Status) string {
	switch {
	case record.GetDeletionTimestamp() != nil:
		return stateLeaving
	case status.Ready:
		return stateReady
	case status.Agent == membership.AgentUnknown:
		return stateNew
	case status.Agent == membership.AgentOnline:
		return stateNotReady
	}
	return string(status.Agent)
}

func tokenRow(token *fleet.ClusterRegistrationToken, now time.Time) []string {
	state, message := stateOf(token, kube.FindCondition(token.Status.Conditions, fleet.ConditionReady))
	if expires := token.Status.Expires; expires != nil && !expires.After(now) {
		state = "Expired"
	}
	var used time.Time
	if token.Status.LastUsed != nil {
		used = token.Status.LastUsed.Time
	}
	return []string{nameOf(token), state, until(token.Status.Expires, now), or(token.Status.Used), since(used, now), since(token.CreationTimestamp.Time, now), message}
}

func requestRow(request *fleet.ClusterRegistration, now time.Time) []string {
	state := string(request.Status.State)
	if state == "" {
		state = stateNew
	}
	return []string{nameOf(request), state, or(request.Status.ClusterName), or(request.Spec.ClientID), since(request.CreationTimestamp.Time, now),
		why(request.Status.State == fleet.RegistrationGranted, request.Status.Message)}
}

func bundleRow(bundle *fleet.Bundle, now time.Time) []string {
	state, message := stateOf(bundle, kube.FindCondition(bundle.Status.Conditions, fleet.ConditionReady))
	if state == stateNotReady && bundle.Status.Display.State != "" {
		state = bundle.Status.Display.State
	}
	return []string{nameOf(bundle), state, or(bundle.Status.Display.ReadyClusters), since(bundle.CreationTimestamp.Time, now), message}
}

func placementRow(o client.Object, kind string, status *placement.PlacementStatus, now time.Time) []string {
	state := stateNew
	for _, condition := range []string{placement.ConditionScheduled, placement.ConditionApplied, placement.ConditionAvailable} { // each asks for the one before
		c := meta.FindStatusCondition(status.Conditions, kind+condition)
		if c == nil {
			continue
		}
		if state = condition; c.Status != metav1.ConditionTrue {
			state = "Not" + condition
			break
		}
	}
	if o.GetDeletionTimestamp() != nil {
		state = stateDeleting
	}
	return []string{nameOf(o), kind, state, or(status.Members), since(o.GetCreationTimestamp().Time, now), why(state == placement.ConditionAvailable, status.Message)}
}

// stateOf says whether an object is ready, and if not why, as its condition does.
func stateOf(o client.Object, ready *fleet.Condition) (state, message string) {
	well := ready == nil || ready.Status == corev1.ConditionTrue
	switch {
	case o.GetDeletionTimestamp() != nil:
		state = stateDeleting
	case ready == nil:
		state = stateNew
	case well:
		state = stateReady
	default:
		state = stateNotReady
	}
	if well {
		return state, nothing
	}
	return state, why(false, ready.Message)
}

// nameOf is how users name an object: with its namespace if it has one.
func nameOf(o client.Object) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}

// why is a message in one line, of what is not well.
func why(well bool, message string) string {
	if well {
		return nothing
	}
	return or(strings.Join(strings.Fields(message), " "))
}

func or(text string) string {
	return cmp.Or(text, nothing)
}

// since is how long ago something was.
func since(at, now time.Time) string {
	if at.IsZero() {
		return nothing
	}
	return duration.HumanDuration(max(0, now.Sub(at)))
}

// until is how long something lasts yet.
func until(at *metav1.Time, now time.Time) string {
	switch {
	case at.IsZero():
		return nothing
	case !at.After(now):
		return fmt.Sprintf("%s ago", since(at.Time, now))
	}
	return "in " + duration.HumanDuration(at.Sub(now))
}
