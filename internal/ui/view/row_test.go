package view

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
)

func TestRows(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
	later := func(d time.Duration) *metav1.Time { return new(metav1.NewTime(now.Add(d))) }
	meta := func(namespace string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: "web", CreationTimestamp: ago(time.Hour)}
	}
	leaving := meta("clusters")
	leaving.DeletionTimestamp = new(ago(time.Minute))
	ready := func(status corev1.ConditionStatus, reason, message string) []fleet.Condition {
		return []fleet.Condition{{Type: "Ready", Status: status, Reason: reason, Message: message}}
	}
	conditions := func(of ...string) (all []metav1.Condition) { // type, status, reason and message of each
		for ; len(of) > 0; of = of[4:] {
			all = append(all, metav1.Condition{Type: of[0], Status: metav1.ConditionStatus(of[1]), Reason: of[2], Message: of[3]})
		}
		return all
	}
	named := meta("clusters")
	named.Annotations = map[string]string{fleet.AnnotationDisplayName: " Web\x1b[31m\nshop "}
	for what, test := range map[string]struct {
		object client.Object
		want   []string
	}{
		"a name for people has one line, and no control characters": {&fleet.Cluster{ObjectMeta: named},
			[]string{"clusters/web", "Cluster", "New", "-", "-", "-", "-", "-", "-", "Web [31m shop", "-", "-", "-", "-"}},
		"a Cluster that the hub has not seen": {&fleet.Cluster{ObjectMeta: meta("clusters")},
			[]string{"clusters/web", "Cluster", "New", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-"}},
		"a Cluster that is well": {&fleet.Cluster{ObjectMeta: meta("clusters"), Status: fleet.ClusterStatus{
			Conditions: ready("True", "", "all is well"), Display: fleet.ClusterDisplay{ReadyNodes: "3/3", ReadyBundles: "2/2"},
			Agent:      fleet.AgentStatus{LastSeen: ago(12 * time.Second), KubernetesVersion: "v1.36.2", Version: "v0.3.0"},
			Credential: &fleet.CredentialStatus{Expires: later(100 * time.Hour)},
		}}, []string{"clusters/web", "Cluster", "Ready", "3/3", "2/2", "v1.36.2", "online", "v0.3.0", "in 4d4h", "-", "-", "-", "-", "-"}},
		"a Cluster whose Bundle is not ready": {&fleet.Cluster{ObjectMeta: meta("clusters"), Status: fleet.ClusterStatus{
			Conditions: ready("False", "NotReady", "ErrApplied(1)\n[Bundle app]"), Agent: fleet.AgentStatus{LastSeen: ago(time.Minute)},
		}}, []string{"clusters/web", "Cluster", "NotReady", "-", "-", "-", "online", "-", "-", "-", "-", "-", "-", "ErrApplied(1) [Bundle app]"}},
		"a Cluster that is lost, and whose credential has run out": {&fleet.Cluster{ObjectMeta: meta("clusters"), Status: fleet.ClusterStatus{
			Conditions: ready("False", "AgentLost", "no heartbeat"), Agent: fleet.AgentStatus{LastSeen: ago(48 * time.Hour)},
			Credential: &fleet.CredentialStatus{Expires: later(-time.Hour)},
		}}, []string{"clusters/web", "Cluster", "Lost", "-", "-", "-", "2d", "-", "60m ago", "-", "-", "-", "-", "no heartbeat"}},
		"a Cluster without an agent": {&fleet.Cluster{
			ObjectMeta: meta("clusters"), Status: fleet.ClusterStatus{Conditions: ready("False", "WaitCheckIn", "no agent yet")},
		},
			[]string{"clusters/web", "Cluster", "Awaited", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-", "no agent yet"}},
		"a Cluster that leaves": {&fleet.Cluster{
			ObjectMeta: leaving, Status: fleet.ClusterStatus{
				Conditions: ready("False", "Leaving", "3 objects are left"), Agent: fleet.AgentStatus{LastSeen: ago(2 * time.Hour)},
			},
		},
			[]string{"clusters/web", "Cluster", "Leaving", "-", "-", "-", "120m", "-", "-", "-", "-", "-", "-", "3 objects are left"}},
		"a MemberCluster that is well": {&clusterv1beta1.MemberCluster{ObjectMeta: meta(""), Status: clusterv1beta1.MemberClusterStatus{
			Conditions: conditions("ReadyToJoin", "True", "", "", "Joined", "True", "", "", "Healthy", "True", "", ""),
			Properties: map[string]clusterv1beta1.PropertyValue{
				"kubernetes-fleet.io/node-count": {Value: "3"}, "k8s.io/k8s-version": {Value: "v1.36.2"},
				"muster/provider": {Value: "aws"}, "muster/region": {Value: "eu-1"}, "muster/distribution": {Value: "eks"},
			},
			AgentStatus: []clusterv1beta1.AgentStatus{{LastReceivedHeartbeat: ago(time.Hour)}, {LastReceivedHeartbeat: ago(5 * time.Second)}},
		}}, []string{"web", "MemberCluster", "Ready", "3", "-", "v1.36.2", "online", "-", "-", "-", "aws", "eu-1", "eks", "-"}},
		"a MemberCluster whose identity is nobody's": {&clusterv1beta1.MemberCluster{ObjectMeta: meta(""),
			Status: clusterv1beta1.MemberClusterStatus{
				Conditions: conditions("ReadyToJoin", "False", "x", "the identity is refused", "Joined", "Unknown", "", "", "Healthy", "Unknown", "",
					"nothing known"),
			}}, []string{"web", "MemberCluster", "Awaited", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-", "the identity is refused"}},
		"a token": {&fleet.ClusterRegistrationToken{ObjectMeta: meta("clusters"), Status: fleet.ClusterRegistrationTokenStatus{
			Conditions: ready("True", "", ""), Expires: later(23 * time.Hour), Used: "1/3", LastUsed: new(ago(time.Minute)),
		}}, []string{"clusters/web", "Ready", "in 23h", "1/3", "60s", "60m", "-"}},
		"a token that has expired": {&fleet.ClusterRegistrationToken{
			ObjectMeta: meta("clusters"), Status: fleet.ClusterRegistrationTokenStatus{Conditions: ready("True", "", ""), Expires: later(0)},
		},
			[]string{"clusters/web", "Expired", "0s ago", "-", "-", "60m", "-"}},
		"a request that waits": {&fleet.ClusterRegistration{ObjectMeta: meta("clusters"), Spec: fleet.ClusterRegistrationSpec{
			ClientID: "edge", ClusterLabels: map[string]string{"region": "eu", "env": "prod"},
		},
			Status: fleet.ClusterRegistrationStatus{State: "Pending", ClusterName: "edge", Message: "approve it"}},
			[]string{"clusters/web", "Pending", "edge", "edge", "-", "env=prod,region=eu", "60m", "approve it"}},
		"a token that is used up": {&fleet.ClusterRegistrationToken{ObjectMeta: meta("clusters"),
			Spec: fleet.ClusterRegistrationTokenSpec{MaxRegistrations: new(int32(1))},
			Status: fleet.ClusterRegistrationTokenStatus{
				Conditions: ready("True", "", ""), Registrations: 1, Used: "1/1",
			}},
			[]string{"clusters/web", "UsedUp", "-", "1/1", "-", "60m",
				"registers no more clusters; the ones registered with it can join again"}},
		"a Bundle that waits": {&fleet.Bundle{
			ObjectMeta: meta("clusters"), Status: fleet.BundleStatus{
				Conditions: ready("False", "", "WaitApplied(2)"), Display: fleet.BundleDisplay{ReadyClusters: "1/3", State: "WaitApplied"},
			},
		},
			[]string{"clusters/web", "WaitApplied", "1/3", "60m", "WaitApplied(2)"}},
		"a Bundle outside of a window": {&fleet.Bundle{
			ObjectMeta: meta("clusters"), Status: fleet.BundleStatus{
				Conditions: ready("False", "OutsideWindow", "Pending(1)"), Display: fleet.BundleDisplay{ReadyClusters: "0/1", State: "Pending"},
			},
		},
			[]string{"clusters/web", "OutsideWindow", "0/1", "60m", "Pending(1)"}},
		"a Bundle with a removal to confirm": {&fleet.Bundle{
			ObjectMeta: meta("clusters"), Status: fleet.BundleStatus{
				Conditions: ready("False", "RemovalHeld", "confirm it"), Display: fleet.BundleDisplay{ReadyClusters: "1/1", State: "Pending"},
			},
		},
			[]string{"clusters/web", "WaitingForApproval", "1/1", "60m", "confirm it"}},
		"a placement that waits for a run": {&placement.ClusterResourcePlacement{ObjectMeta: meta(""),
			Status: placement.PlacementStatus{Members: "0/1", Message: "no run has reached a",
				Conditions: conditions("ClusterResourcePlacementScheduled", "True", "", "", "ClusterResourcePlacementRolloutStarted", "Unknown",
					"RolloutControlledByExternalController", "")}},
			[]string{"web", "ClusterResourcePlacement", "WaitingForRun", "0/1", "60m", "no run has reached a"}},
		"a placement that is applied": {&placement.ClusterResourcePlacement{ObjectMeta: meta(""),
			Status: placement.PlacementStatus{Members: "2/3", Message: "1 member is waited for",
				Conditions: conditions("ClusterResourcePlacementScheduled", "True", "", "", "ClusterResourcePlacementApplied", "True", "", "",
					"ClusterResourcePlacementAvailable", "False", "", "")}},
			[]string{"web", "ClusterResourcePlacement", "NotAvailable", "2/3", "60m", "1 member is waited for"}},
		"a placement that is available": {&placement.ResourcePlacement{ObjectMeta: meta("shop"),
			Status: placement.PlacementStatus{Members: "3/3", Message: "x",
				Conditions: conditions("ResourcePlacementScheduled", "True", "", "", "ResourcePlacementApplied", "True", "", "",
					"ResourcePlacementAvailable", "True", "", "")}},
			[]string{"shop/web", "ResourcePlacement", "Available", "3/3", "60m", "-"}},
		"a placement that selects a missing object": {&placement.ResourcePlacement{ObjectMeta: meta("shop"),
			Status: placement.PlacementStatus{Members: "1/1", Message: "1 members picked; the hub has no Namespace nope",
				Conditions: conditions("ResourcePlacementScheduled", "True", "", "", "ResourcePlacementAvailable", "True", "", "")}},
			[]string{"shop/web", "ResourcePlacement", "Available", "1/1", "60m", "the hub has no Namespace nope"}},
	} {
		if diff := cmp.Diff(test.want, Row(test.object, now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}

func TestACordonedMemberSaysSo(t *testing.T) {
	member := &fleet.Cluster{}
	if got := whyOfMember(member, membership.Status{Ready: true}, "", time.Now()); got != Nothing {
		t.Errorf("a member that is well: %q", got)
	}
	member.Annotations = map[string]string{fleet.AnnotationCordoned: "true"}
	for message, want := range map[string]string{
		"": "cordoned: no new deliveries", "no heartbeat": "cordoned: no new deliveries; no heartbeat",
	} {
		if got := whyOfMember(member, membership.Status{Ready: message == ""}, message, time.Now()); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	mc := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{fleet.AnnotationPaused: "true"}}}
	member = &fleet.Cluster{Spec: fleet.ClusterSpec{Paused: true}}
	for _, o := range []client.Object{mc, member} {
		if got := whyOfMember(o, membership.Status{Ready: true}, "", time.Now()); got != "paused: nothing changes" {
			t.Errorf("a paused %T: %q", o, got)
		}
	}
}

func TestAMemberWithDeliveriesFromBeforeARestoreSaysSo(t *testing.T) {
	const want = "keeps deliveries that the restored hub does not know"
	cluster, mc := &fleet.Cluster{}, &clusterv1beta1.MemberCluster{}
	for reason, want := range map[string]string{reasons.HubRestored: want, reasons.RemovalBlocked: Nothing} {
		cluster.Status.Conditions = []fleet.Condition{kube.Condition(clusterv1beta1.ConditionPruned, false, reason, "said")}
		mc.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.ConditionPruned, Status: metav1.ConditionFalse, Reason: reason}}
		for _, o := range []client.Object{cluster, mc} {
			if got := whyOfMember(o, membership.Status{Ready: true}, "", time.Now()); got != want {
				t.Errorf("a %T with %s: %q", o, reason, got)
			}
		}
	}
}

func TestAQuarantinedMemberNamesItsUserAndSinceWhen(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	annotations := map[string]string{fleet.AnnotationQuarantined: "true", fleet.AnnotationQuarantinedBy: "ada"}
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}
	cluster.Status.Agent.LastSeen = metav1.NewTime(now)
	set := func(kind string, is bool, reason string) {
		cluster.Status.Conditions = kube.SetCondition(cluster.Status.Conditions, now.Add(-5*time.Minute),
			kube.Condition(kind, is, reason, "said"))
	}
	set(fleet.ConditionReady, true, "Ready")
	check := func(what, state, why string) {
		t.Helper()
		if row := Row(cluster, now); row[2] != state || row[len(row)-1] != why {
			t.Errorf("%s: %s, %s", what, row[2], row[len(row)-1])
		}
	}
	check("before the hub has seen it", StateReady, "quarantined: not yet confirmed by the hub")
	set(fleet.ConditionQuarantined, true, reasons.Quarantined)
	set(fleet.ConditionReady, false, reasons.Quarantined)
	check("in quarantine", StateQuarantined, "quarantined for 5m by ada: only heartbeats")
	set(fleet.ConditionReady, false, reasons.AgentLost)
	check("lost in quarantine", "Lost", "quarantined for 5m by ada: only heartbeats; said")
	set(fleet.ConditionQuarantined, true, reasons.Quarantining)
	set(fleet.ConditionReady, false, reasons.Quarantined)
	check("with a right that is left", StateQuarantined, "said")
}
