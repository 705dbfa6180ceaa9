package view

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

func TestAGrantedRequestSaysWhoApprovedItAndWhen(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))
	request := &fleet.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: "request-1", Annotations: map[string]string{
		fleet.AnnotationApprovedBy: "ada"}}}
	if events := WithHistory(request, nil); len(events) > 0 {
		t.Errorf("a new request has %v", events)
	}
	request.Status = fleet.ClusterRegistrationStatus{Granted: true, GrantedAt: &at, ApprovedReason: reasons.ApprovalRequired}
	events := WithHistory(request, nil)
	if len(events) != 1 || events[0].InvolvedObject.Kind != "ClusterRegistration" || events[0].Reason != "Approved" ||
		!events[0].LastTimestamp.Equal(&at) || events[0].Message != "ada approved ClusterRegistration request-1" {
		t.Errorf("a granted request has %v", events)
	}
}

func TestAnEventAboutAChangeInTheHistoryIsLeftOut(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	at := func(minutes int) metav1.Time { return metav1.NewTime(noon.Add(time.Duration(minutes) * time.Minute)) }
	event := func(reason string, minutes int) *corev1.Event {
		return &corev1.Event{Reason: reason, Message: reason, LastTimestamp: at(minutes)}
	}
	last := at(50)
	member := &clusterv1beta1.MemberCluster{Status: clusterv1beta1.MemberClusterStatus{History: []clusterv1beta1.HistoryEntry{
		{Time: at(0), Reason: clusterv1beta1.HistoryJoined, Message: "joined"},
		{Time: at(40), LastTime: &last, Count: 3, Reason: clusterv1beta1.HistoryLost, Message: "lost"},
	}}}
	events := []*corev1.Event{
		event("MemberClusterJoined", 0), event("MemberClusterReadyToJoin", 0), event("AgentLost", 10), event("AgentLost", 45),
		event("MemberClusterHealthy", 46),
	}
	var got []string
	for _, shown := range WithHistory(member, events) {
		got = append(got, shown.LastTimestamp.UTC().Format("15:04 ")+shown.Reason+": "+shown.Message)
	}
	want := []string{
		"12:00 MemberClusterReadyToJoin: MemberClusterReadyToJoin", "12:00 Joined: joined", "12:10 AgentLost: AgentLost",
		"12:46 MemberClusterHealthy: MemberClusterHealthy", "12:50 Lost: lost (3 times since 2026-01-02T12:40:00Z)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if all := WithHistory(&corev1.ConfigMap{}, events); len(all) != len(events) {
		t.Errorf("another object has %d Events", len(all))
	}
}
