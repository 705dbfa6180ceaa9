package inventory

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	inventory "github.com/muster-fleet/muster/api/inventory/v1alpha1"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const healthyMessage = "the agent sends heartbeats and its API server is healthy"

func condition(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Status: status, Reason: reason, Message: message}
}

// member is a joined MemberCluster an hour old, with a profile that shows it as it is and was
// written an hour ago.
func member(change ...func(*observed)) observed {
	mc := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{
		Name: "m", CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)),
		Labels: map[string]string{
			"env": "prod", clusterv1beta1.LabelMemberName: "m", "x-k8s.io/cluster-manager": "me", "multicluster.x-k8s.io/clusterset": "mine",
		},
	}}
	report := &clusterv1beta1.InternalMemberCluster{}
	report.Status = clusterv1beta1.InternalMemberClusterStatus{
		KubernetesVersion: "v1.36.3",
		AgentStatus:       []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent}},
		Properties: map[string]clusterv1beta1.PropertyValue{
			clusterv1beta1.PropertyNodeCount:                {Value: "3", ObservationTime: metav1.NewTime(now.Add(-time.Hour))},
			"cluster.clusterset.k8s.io":                     {Value: "c-1", ObservationTime: metav1.NewTime(now.Add(-time.Hour))},
			"resources.kubernetes-fleet.io/available-cpu":   {Value: "7"},
			"resources.kubernetes-fleet.io/allocatable-cpu": {Value: "8"},
		},
	}
	o := observed{
		key: types.NamespacedName{Name: "m"}, namespace: "fleet-inventory", report: report, statusWritten: now.Add(-time.Hour),
		record: &record{
			object: mc, reconciled: true, joined: condition("True", "MemberClusterJoined", "joined"),
			healthy: condition("True", "AgentHealthy", healthyMessage),
		},
	}
	o.current, _ = describe(o, now.Add(-time.Hour))
	for _, c := range change {
		c(&o)
	}
	return o
}

func TestProfileOfAMember(t *testing.T) {
	then := metav1.NewTime(now.Add(-time.Hour))
	want := &inventory.ClusterProfile{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "fleet-inventory", Name: "m",
			Labels: map[string]string{
				"env": "prod", "x-k8s.io/cluster-manager": "muster", "fleet.cattle.io/managed": "true", "kubernetes-fleet.io/member-name": "m",
			},
			Annotations: map[string]string{annotationLabels: "env"},
		},
		Spec: inventory.ClusterProfileSpec{DisplayName: "m", ClusterManager: inventory.ClusterManager{Name: "muster"}},
		Status: inventory.ClusterProfileStatus{
			Conditions: []metav1.Condition{
				{Type: "Joined", Status: "True", Reason: "MemberClusterJoined", Message: "joined", LastTransitionTime: then},
				{Type: "ControlPlaneHealthy", Status: "True", Reason: "AgentHealthy", Message: healthyMessage, LastTransitionTime: then},
			},
			Version: inventory.ClusterVersion{Kubernetes: "v1.36.3"},
			Properties: []inventory.Property{
				{Name: "cluster.clusterset.k8s.io", Value: "c-1", LastObservedTime: &then},
				{Name: "kubernetes-fleet.io/node-count", Value: "3", LastObservedTime: &then},
			},
		},
	}
	if diff := cmp.Diff(want, member().current); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	o := member(func(o *observed) { o.key, o.current = types.NamespacedName{Namespace: "ws", Name: "c"}, nil })
	profile, _ := describe(o, now)
	if profile.Name != "ws.c" || profile.Spec.DisplayName != "ws/c" || profile.Annotations["fleet.cattle.io/cluster"] != "c" ||
		profile.Annotations["fleet.cattle.io/cluster-namespace"] != "ws" {
		t.Errorf("of a Cluster: %+v", profile)
	}
}

func TestDecide(t *testing.T) {
	property := func(name, value string) func(*observed) {
		return func(o *observed) {
			o.report.Status.Properties[name] = clusterv1beta1.PropertyValue{Value: value, ObservationTime: metav1.NewTime(now)}
		}
	}
	shownAgo := func(ago time.Duration) func(*observed) { return func(o *observed) { o.statusWritten = now.Add(-ago) } }
	healthy := func(c metav1.Condition) func(*observed) { return func(o *observed) { o.record.healthy = c } }
	turnedAgo := func(ago time.Duration) func(*observed) {
		return func(o *observed) { o.current.Status.Conditions[1].LastTransitionTime = metav1.NewTime(now.Add(-ago)) }
	}
	none := func(o *observed) { o.current = nil }
	young := func(o *observed) { o.record.object.SetCreationTimestamp(metav1.NewTime(now.Add(-2 * time.Second))) }
	unseen := healthy(condition("Unknown", "AgentUnseen", ""))
	ill := healthy(condition("False", "AgentUnhealthy", "etcd is gone"))
	lost := healthy(condition("Unknown", "AgentLost", "no heartbeat since noon"))
	gone := func(o *observed) { o.record = nil }
	foreign := func(o *observed) { o.current.Spec.ClusterManager.Name = "somebody" }
	for _, c := range []struct {
		name     string
		observed observed
		want     action
		wake     time.Duration
	}{
		{"a profile that is as it should be is left alone", member(), idle, 0},
		{"so it does whatever the time of a report is", member(property(clusterv1beta1.PropertyNodeCount, "3")), idle, 0},
		{"usage is not shown", member(property("resources.kubernetes-fleet.io/available-cpu", "1")), idle, 0},
		{"a member without a profile gets one", member(none), create, 0},
		{"not before its controller has reconciled the record", member(none, func(o *observed) { o.record.reconciled = false }), idle, 0},
		{"a young one that is joined and reported gets it at once", member(none, young), create, 0},
		{"a young one that is not waits a little for its agent", member(none, young, unseen), idle, reportGrace - 2*time.Second},
		{"and so does one that has not reported", member(none, young, func(o *observed) { o.report = nil }), idle, reportGrace - 2*time.Second},
		{"but not for ever", member(none, unseen), create, 0},
		{"nor longer than that where clocks differ", member(none, unseen, func(o *observed) {
			o.record.object.SetCreationTimestamp(metav1.NewTime(now.Add(time.Hour)))
		}), idle, reportGrace},
		{"a new label is copied", member(func(o *observed) { o.record.object.SetLabels(map[string]string{"env": "prod", "a": "b"}) }), update, 0},
		{"one that is gone is removed", member(func(o *observed) { o.record.object.SetLabels(nil) }), update, 0},
		{"a label edited by hand is healed", member(func(o *observed) { o.current.Labels["env"] = "dev" }), update, 0},
		{"so is the display name", member(func(o *observed) { o.current.Spec.DisplayName = "x" }), update, 0},
		{"a label that somebody added is his", member(func(o *observed) { o.current.Labels["his"] = "own" }), idle, 0},
		{"a status edited by hand is healed", member(func(o *observed) { o.current.Status = inventory.ClusterProfileStatus{} }), updateStatus, 0},
		{"access providers that somebody added are his", member(func(o *observed) {
			o.current.Status.AccessProviders = []inventory.AccessProvider{{Name: "his"}}
		}), idle, 0},
		{"silence is shown at once", member(lost, shownAgo(time.Second)), updateStatus, 0},
		{"even just after the control plane turned", member(lost, shownAgo(time.Second), turnedAgo(time.Second)), updateStatus, 0},
		{"illness is shown at once", member(ill, shownAgo(time.Second)), updateStatus, 0},
		{"unless the control plane was ill a moment ago", member(ill, turnedAgo(10*time.Second)), idle, 20 * time.Second},
		{"a property is shown", member(property("a", "b")), updateStatus, 0},
		{"but no two within 30 s", member(property("a", "b"), shownAgo(10*time.Second)), idle, 20 * time.Second},
		{"a profile of another manager is left alone", member(foreign), refuse, 0},
		{"also without a record", member(foreign, gone), idle, 0},
		{"the profile goes with the record", member(gone), remove, 0},
		{"nothing is left to do after that", member(gone, none), idle, 0},
		{"without a namespace there is no inventory", member(none, func(o *observed) { o.namespace = "" }), idle, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := decide(c.observed, now); got.action != c.want || got.wake != c.wake {
				t.Errorf("got %s, again in %s; want %s, again in %s", got.action, got.wake, c.want, c.wake)
			}
		})
	}
}

func TestLabelThatTheRecordHasNoMoreGoesAndThoseOfOthersStay(t *testing.T) {
	o := member(func(o *observed) {
		o.current.Labels["his"] = "own"
		o.record.object.SetLabels(map[string]string{"region": "eu"})
	})
	got := decide(o, now).profile
	want := map[string]string{
		"his": "own", "region": "eu", "x-k8s.io/cluster-manager": "muster", "fleet.cattle.io/managed": "true",
		"kubernetes-fleet.io/member-name": "m",
	}
	if diff := cmp.Diff(want, got.Labels); diff != "" || got.Annotations[annotationLabels] != "region" {
		t.Errorf("annotation %q, labels (-want +got):\n%s", got.Annotations[annotationLabels], diff)
	}
}

func TestPropertyThatAProfileCannotHoldIsNamedAndTheOthersAreShown(t *testing.T) {
	o := member(func(o *observed) {
		at := metav1.NewTime(now)
		o.report.Status.Properties["just-fits"] = clusterv1beta1.PropertyValue{Value: strings.Repeat("ä", 1024), ObservationTime: at}
		o.report.Status.Properties["too-long"] = clusterv1beta1.PropertyValue{Value: strings.Repeat("ä", 1025), ObservationTime: at}
		o.report.Status.Properties["empty"] = clusterv1beta1.PropertyValue{ObservationTime: at}
	})
	next := decide(o, now)
	var names []string
	for _, property := range next.profile.Status.Properties {
		names = append(names, property.Name)
	}
	if diff := cmp.Diff([]string{"cluster.clusterset.k8s.io", "just-fits", "kubernetes-fleet.io/node-count"}, names); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"too-long"}, next.skipped); diff != "" || next.action != updateStatus {
		t.Errorf("%s; skipped (-want +got):\n%s", next.action, diff)
	}
}

func TestReportDeletedByMistakeTakesNothingOffTheProfile(t *testing.T) {
	for name, report := range map[string]*clusterv1beta1.InternalMemberCluster{"none": nil, "not yet written": {}} {
		if got := decide(member(func(o *observed) { o.report = report }), now); got.action != idle {
			t.Errorf("%s: got %s, want idle", name, got.action)
		}
	}
}

func TestHeldConditionIsNotShownWithWhatElseIs(t *testing.T) {
	o := member(func(o *observed) {
		o.record.healthy = condition("False", "AgentUnhealthy", "etcd is gone")
		o.record.joined.Reason = "Leaving"
		o.current.Status.Conditions[1].LastTransitionTime = metav1.NewTime(now.Add(-time.Second))
	})
	next := decide(o, now)
	if next.action != updateStatus || next.profile.Status.Conditions[1].Status != metav1.ConditionTrue || next.wake != 29*time.Second {
		t.Errorf("%s, again in %s: %+v", next.action, next.wake, next.profile.Status.Conditions)
	}
}
