package lifecycle

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
)

func TestWhatCouldNotBePrunedIsShownWithinBounds(t *testing.T) {
	said := func(conditions ...metav1.Condition) *clusterv1beta1.InternalMemberCluster {
		return &clusterv1beta1.InternalMemberCluster{Status: clusterv1beta1.InternalMemberClusterStatus{
			AgentStatus: []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent, Conditions: conditions}},
		}}
	}
	pruned := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: clusterv1beta1.ConditionPruned, Status: status, Reason: reason, Message: message}
	}
	long := strings.Repeat("ä", 1000)
	for _, c := range []struct {
		name            string
		report          *clusterv1beta1.InternalMemberCluster
		reason, message string
	}{
		{"no report", nil, "", ""},
		{"an agent that has nothing to say", said(), "", ""},
		{"an agent that has removed everything", said(pruned(metav1.ConditionTrue, "Pruned", "all")), "", ""},
		{"something is in the way", said(pruned(metav1.ConditionFalse, "RemovalBlocked", "x")), clusterv1beta1.ReasonRemovalBlocked, "x"},
		{"nobody knows", said(pruned(metav1.ConditionFalse, "RemovalUnconfirmed", "x")), clusterv1beta1.ReasonRemovalUnconfirmed, "x"},
		{"the hub was restored", said(pruned(metav1.ConditionFalse, "HubRestored", "x")), "HubRestored", "x"},
		{"a reason of the member's own", said(pruned(metav1.ConditionFalse, "AgentLost", "x")), clusterv1beta1.ReasonRemovalBlocked, "x"},
		{
			"a novel is cut between its letters", said(pruned(metav1.ConditionFalse, "RemovalBlocked", "a"+long)),
			clusterv1beta1.ReasonRemovalBlocked, "a" + long[:398] + "...",
		},
	} {
		if reason, message := NotPruned(c.report); reason != c.reason || message != c.message {
			t.Errorf("%s: %s %q, want %s %q", c.name, reason, message, c.reason, c.message)
		}
	}
}
