package explain

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

var named = metav1.ObjectMeta{Namespace: "clusters", Name: "web"}

func clusterWith(conditions ...fleet.Condition) *fleet.Cluster {
	return &fleet.Cluster{ObjectMeta: named, Status: fleet.ClusterStatus{Conditions: conditions}}
}

func condition(kind, status, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, Message: message}
}

func TestTheFirstCauseIsThatOfTheOthers(t *testing.T) {
	request := func(state fleet.RegistrationState, reason string) *fleet.ClusterRegistration {
		return &fleet.ClusterRegistration{
			ObjectMeta: named, Status: fleet.ClusterRegistrationStatus{State: state, Reason: reason, Granted: state == fleet.RegistrationGranted},
		}
	}
	member := func(conditions ...metav1.Condition) *clusterv1beta1.MemberCluster {
		return &clusterv1beta1.MemberCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "edge"}, Status: clusterv1beta1.MemberClusterStatus{Conditions: conditions},
		}
	}
	ready := fleet.Condition{Type: "Ready", Status: "True", Reason: "Ready"}
	onMember := func(name string, failed []placement.FailedPlacement, conditions ...metav1.Condition) placement.PerClusterStatus {
		return placement.PerClusterStatus{ClusterName: name, FailedPlacements: failed, Conditions: conditions}
	}
	for name, row := range map[string]struct {
		objects []client.Object
		want    []string
	}{
		"nobody has looked at it": {[]client.Object{clusterWith()}, []string{"Cluster clusters/web NotObserved"}},
		"all is well":             {[]client.Object{clusterWith(ready)}, nil},
		"well, but": {
			[]client.Object{clusterWith(fleet.Condition{Type: "Ready", Status: "True", Message: "look"})}, []string{"Cluster clusters/web  aside"},
		},
		"a placement selects a missing object": {
			[]client.Object{&placement.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Status: placement.PlacementStatus{
				Message:    "1 members picked; the hub has no Namespace nope",
				Conditions: []metav1.Condition{condition("ClusterResourcePlacementScheduled", "True", "SchedulingPolicyFulfilled", "")},
			}}},
			[]string{"ClusterResourcePlacement web  aside"},
		},
		"what is aside comes last, what is not known before": {[]client.Object{clusterWith(
			fleet.Condition{Type: "AgentUpToDate", Status: "False", Reason: "Offline"}, fleet.Condition{
				Type: "New", Status: "Unknown", Reason: "Unheard",
			},
			fleet.Condition{Type: "Ready", Status: "False", Reason: "AgentLost"})},
			[]string{"Cluster clusters/web AgentLost", "Cluster clusters/web Unheard", "Cluster clusters/web Offline aside"}},
		"Cloned is bad if it is True": {
			[]client.Object{clusterWith(ready, fleet.Condition{Type: "Cloned", Status: "True", Reason: "AgentWaiting"})},
			[]string{"Cluster clusters/web AgentWaiting"},
		},
		"and good if not": {
			[]client.Object{clusterWith(ready, fleet.Condition{Type: "Cloned", Status: "False", Reason: "AgentWaiting"})}, nil,
		},
		"one sentence in two conditions": {[]client.Object{clusterWith(
			fleet.Condition{Type: "Ready", Status: "False", Reason: "Unreachable", Message: "m"}, fleet.Condition{
				Type: "Imported", Status: "False", Reason: "Unreachable", Message: "m",
			})},
			[]string{"Cluster clusters/web Unreachable"}},
		"one sentence by two reasons": {[]client.Object{&fleet.BundleDeployment{ObjectMeta: named,
			Status: fleet.BundleDeploymentStatus{Conditions: []fleet.Condition{
				{Type: "Ready", Status: "False", Reason: "Error", Message: "m"}, {
					Type: "Deployed", Status: "False", Reason: "ReleaseConflict", Message: "m",
				}}}}},
			[]string{"BundleDeployment clusters/web ReleaseConflict"}},
		"a deployment comes after its Cluster": {[]client.Object{
			&fleet.BundleDeployment{
				ObjectMeta: named, Status: fleet.BundleDeploymentStatus{
					Conditions: []fleet.Condition{{Type: "Deployed", Status: "False", Reason: "ReleaseConflict"}},
				},
			},
			clusterWith(fleet.Condition{Type: "Ready", Status: "False", Reason: "Revoked"})},
			[]string{"Cluster clusters/web Revoked", "BundleDeployment clusters/web ReleaseConflict"}},
		"a release that is deployed, and not ready": {[]client.Object{&fleet.BundleDeployment{ObjectMeta: named,
			Status: fleet.BundleDeploymentStatus{Conditions: []fleet.Condition{
				{Type: "Deployed", Status: "True", Reason: "Deployed"}, {Type: "Ready", Status: "False", Reason: "Error", Message: "m"},
			}}}},
			[]string{"BundleDeployment clusters/web NotReady"}},
		"a release that is deployed, and changed": {[]client.Object{&fleet.BundleDeployment{ObjectMeta: named,
			Status: fleet.BundleDeploymentStatus{ModifiedStatus: []fleet.ModifiedStatus{{Name: "web"}}, Conditions: []fleet.Condition{
				{Type: "Deployed", Status: "True", Reason: "Deployed"}, {Type: "Ready", Status: "False", Reason: "Error", Message: "m"},
			}}}},
			[]string{"BundleDeployment clusters/web Modified"}},
		"a granted request": {[]client.Object{request(fleet.RegistrationGranted, "Granted")}, nil},
		"a request that the other hub granted": {
			[]client.Object{&fleet.ClusterRegistration{ObjectMeta: named, Status: fleet.ClusterRegistrationStatus{Granted: true}}}, nil,
		},
		"a request that nobody has looked at": {[]client.Object{request("", "")}, []string{"ClusterRegistration clusters/web NotObserved"}},
		"a denied request": {
			[]client.Object{request(fleet.RegistrationDenied, "TokenExpired")}, []string{"ClusterRegistration clusters/web TokenExpired"},
		},
		"a superseded one": {
			[]client.Object{request(fleet.RegistrationDenied, "Superseded")}, []string{"ClusterRegistration clusters/web Superseded aside"},
		},
		"a member that is lost": {
			[]client.Object{member(condition("Joined", "True", "MemberClusterJoined", ""), condition("Healthy", "False", "AgentLost", ""))},
			[]string{"MemberCluster edge AgentLost"},
		},
		"a member that leaves, which is no loss": {
			[]client.Object{member(condition("Joined", "True", "Leaving", "one Work is left"))}, []string{"MemberCluster edge Leaving"},
		},
		"a placement, by what fails": {[]client.Object{&placement.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "shop"},
			Status: placement.PlacementStatus{
				Conditions: []metav1.Condition{condition("ClusterResourcePlacementScheduled", "True", "SchedulingPolicyFulfilled", ""),
					condition("ClusterResourcePlacementAvailable", "False", "NotAllWorkAreAvailable", "")},
				PlacementStatuses: []placement.PerClusterStatus{
					onMember("edge", []placement.FailedPlacement{{
						ResourceIdentifier: placement.ResourceIdentifier{Kind: "Deployment", Namespace: "shop", Name: "till"},
						Condition:          condition("Available", "False", "ManifestNotAvailableYet", "no Pod"),
					}},
						condition("Scheduled", "True", "Scheduled", ""), condition("Available", "False", "NotAllWorkAreAvailable", "")),
				}, Obstacles: []placement.Obstacle{{ClusterName: "far", Reason: "TaintNotTolerated"}}}}},
			[]string{"ClusterResourcePlacement shop ManifestNotAvailableYet", "ClusterResourcePlacement shop NotAllWorkAreAvailable"}},
		"a placement that misses a member": {[]client.Object{&placement.ResourcePlacement{ObjectMeta: named, Status: placement.PlacementStatus{
			Conditions: []metav1.Condition{condition("ResourcePlacementScheduled", "False", "SchedulingPolicyUnfulfilled", "")},
			Obstacles:  []placement.Obstacle{{ClusterName: "far", Reason: "TaintNotTolerated", Message: "it is tainted"}},
			PlacementStatuses: []placement.PerClusterStatus{onMember("far", nil,
				condition("Scheduled", "False", "ScheduleFailed", "it is tainted"))}}}},
			[]string{"ResourcePlacement clusters/web SchedulingPolicyUnfulfilled", "ResourcePlacement clusters/web TaintNotTolerated"}},
	} {
		var got []string
		for _, f := range Of(row.objects...) {
			line := f.Object() + " " + f.Reason
			if f.Aside {
				line += " aside"
			}
			got = append(got, line)
		}
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestAFindingHasWhatHelps(t *testing.T) {
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	cluster := clusterWith(fleet.Condition{
		Type: "Ready", Status: "False", Reason: "WaitCheckIn", Message: "waiting", LastTransitionTime: "2026-01-02T03:04:05Z",
	})
	got := Of(cluster)[0]
	want := Problem{
		Kind: "Cluster", Namespace: "clusters", Name: "web", Condition: "Ready", Reason: "WaitCheckIn", Message: "waiting", Since: since,
	}
	if got.Problem != want || got.Means == "" || got.Remedy == "" ||
		!slices.Contains(got.OnHub, "muster get requests -n clusters") || len(got.OnMember) == 0 {
		t.Errorf("found: %+v", got)
	}
	for _, text := range append(slices.Concat(got.OnHub, got.OnMember), got.Remedy) {
		if strings.Contains(text, "NAME") || strings.Contains(text, "OBJECT") {
			t.Errorf("nobody can use %q", text)
		}
	}
}

func TestEachCauseHelps(t *testing.T) {
	known := map[string]string{}
	for _, c := range causes {
		if len(c.kinds) == 0 || len(c.reasons) == 0 || !strings.HasSuffix(c.means, ".") || !strings.HasSuffix(c.remedy, ".") {
			t.Errorf("%v: says %q and %q", c.reasons, c.means, c.remedy)
		}
		for _, kind := range c.kinds {
			for _, reason := range c.reasons {
				if other, twice := known[kind+" "+reason]; twice {
					t.Errorf("%s of %s means both %q and %q", reason, kind, other, c.means)
				}
				known[kind+" "+reason] = c.means
			}
		}
	}
	if len(causes) < 30 {
		t.Errorf("there are %d causes", len(causes))
	}
}

// TestCommandsAreForTheAgentThatThereIs has the chart member-agent in the place of fleet-agent on
// MemberClusters, to which most Works are delivered.
func TestCommandsAreForTheAgentThatThereIs(t *testing.T) {
	for _, c := range causes {
		for _, kind := range c.kinds {
			for _, reason := range c.reasons {
				found := find(Problem{Kind: kind, Namespace: "in", Name: "object", Reason: reason})
				for _, command := range slices.Concat(found.OnHub, found.OnMember) {
					if slices.Contains([]string{kindMemberCluster, kindWork, kindClusterPlacement, kindPlacement}, kind) &&
						strings.Contains(command, "app=fleet-agent") {
						t.Errorf("%s of %s: %s", reason, kind, command)
					}
					if kind == kindCluster && strings.Contains(command, "member-agent") {
						t.Errorf("%s of %s: %s", reason, kind, command)
					}
					if strings.Contains(command, "object:") || strings.HasSuffix(command, "token create") {
						t.Errorf("%s of %s: nobody can use %s", reason, kind, command)
					}
				}
			}
		}
	}
}
