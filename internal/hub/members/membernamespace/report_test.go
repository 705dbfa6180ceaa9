package membernamespace

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
)

func TestOfAReportThatIsTooLargeOnlyTheHealthIsKept(t *testing.T) {
	report := func(size int) *clusterv1beta1.InternalMemberCluster {
		r := &clusterv1beta1.InternalMemberCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-member-m", Name: "m"}}
		r.Status.Properties = map[string]clusterv1beta1.PropertyValue{"a": {Value: strings.Repeat("x", size)}}
		r.Status.AgentStatus = []clusterv1beta1.AgentStatus{{Type: "Other"}, {Type: clusterv1beta1.MemberAgent, Conditions: []metav1.Condition{
			{Type: clusterv1beta1.ConditionJoined, Status: metav1.ConditionTrue, Message: strings.Repeat("y", size)}, {Type: "Noise", Message: "z"},
		}}}
		return r
	}
	small := report(1000)
	Bound(small)
	if Oversized(small) != "" || len(small.Status.Properties) != 1 || len(small.Status.AgentStatus) != 2 {
		t.Errorf("a small report became %+v", small)
	}
	large := report(300 << 10)
	Bound(large)
	joined := membership.AgentCondition(large, clusterv1beta1.ConditionJoined)
	if joined == nil || joined.Status != metav1.ConditionTrue || membership.AgentCondition(large, "Noise") != nil ||
		len(large.Status.Properties) > 0 {
		t.Errorf("a large report became %+v", large)
	}
	if text, err := json.Marshal(large); err != nil || len(text) > 4<<10 {
		t.Errorf("it still has %d bytes, %v", len(text), err)
	}
	if said := Oversized(large); !strings.Contains(said, "fleet-member-m/m has 61") {
		t.Errorf("it says %q", said)
	}
}

func TestAHeartbeatAloneIsNoChangeOfAReport(t *testing.T) {
	before := &clusterv1beta1.InternalMemberCluster{ObjectMeta: metav1.ObjectMeta{Generation: 1, ResourceVersion: "1"}}
	before.Status.AgentStatus = []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: metav1.Now()}}
	for what, test := range map[string]struct {
		change func(*clusterv1beta1.InternalMemberCluster)
		want   bool
	}{
		"nothing": {func(r *clusterv1beta1.InternalMemberCluster) { r.ResourceVersion = "2" }, false},
		"the record of a removal": {func(r *clusterv1beta1.InternalMemberCluster) {
			r.Annotations = map[string]string{clusterv1beta1.AnnotationRemoved: "u"}
		}, false},
		"another annotation": {func(r *clusterv1beta1.InternalMemberCluster) { r.Annotations = map[string]string{"a": "b"} }, true},
		"a heartbeat": {func(r *clusterv1beta1.InternalMemberCluster) {
			r.Status.AgentStatus[0].LastReceivedHeartbeat = metav1.NewTime(time.Now().Add(time.Minute))
		}, false},
		"a condition": {func(r *clusterv1beta1.InternalMemberCluster) {
			r.Status.AgentStatus[0].Conditions = []metav1.Condition{{Type: clusterv1beta1.ConditionHealthy, Status: metav1.ConditionFalse}}
		}, true},
		"a property": {func(r *clusterv1beta1.InternalMemberCluster) {
			r.Status.Properties = map[string]clusterv1beta1.PropertyValue{"a": {}}
		}, true},
		"another agent": {func(r *clusterv1beta1.InternalMemberCluster) {
			r.Status.AgentStatus = append(r.Status.AgentStatus, clusterv1beta1.AgentStatus{Type: "Other"})
		}, true},
		"what is asked": {func(r *clusterv1beta1.InternalMemberCluster) { r.Generation = 2 }, true},
		"that it is big": {func(r *clusterv1beta1.InternalMemberCluster) {
			r.Annotations = map[string]string{annotationOversized: "300000"}
		}, true},
		"a finalizer": {func(r *clusterv1beta1.InternalMemberCluster) { r.Finalizers = []string{"a"} }, true},
	} {
		after := before.DeepCopy()
		test.change(after)
		if got := MoreThanBeats(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != test.want {
			t.Errorf("%s: %t", what, got)
		}
	}
}
