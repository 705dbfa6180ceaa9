package explain

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

func TestAnObjectThatIsNotReadyIsExplainedByTheWordsOfKubernetes(t *testing.T) {
	for message, want := range map[string]string{
		`Available: 0/1; container web: ImagePullBackOff: Back-off pulling image "shop/web:9"`: "cannot pull the image",
		"Available: 0/1; container web: CrashLoopBackOff: OOMKilled, exit code 137":            "memory limit",
		"Available: 0/1; container web: CrashLoopBackOff: Error, exit code 3: no such host":    "ends with an error",
		`Available: 0/1; FailedCreate: pods "web-*" is forbidden: exceeded quota: q`:           "ResourceQuota",
		`Available: 0/1; FailedCreate: pods "web-*" is forbidden: violates PodSecurity`:        "refuses to create",
		"Unschedulable: unbound immediate claims; PersistentVolumeClaim data: Pending":         "not bound",
		"Available: 0/1; Unschedulable: 0/3 nodes are available: 3 Insufficient cpu.":          "No node",
		"Available: 0/1; Pods may not be read: pods is forbidden":                              "no right to read the Pods",
		"Available: 0/1": "some of its objects are not ready",
	} {
		deployment := &fleet.BundleDeployment{ObjectMeta: named, Status: fleet.BundleDeploymentStatus{Conditions: []fleet.Condition{
			{Type: "Deployed", Status: "True", Reason: "Deployed"}, {Type: "Ready", Status: "False", Reason: "Error", Message: message},
		}}}
		found := Of(deployment)
		if len(found) != 1 || !strings.Contains(found[0].Means, want) || strings.Contains(found[0].Means, "Helm") || found[0].Remedy == "" {
			t.Errorf("%s: %+v", message, found)
		}
	}
}

func TestARefusedObjectIsExplainedByTheWordsOfKubernetes(t *testing.T) {
	for message, want := range map[string]string{
		`no matches for kind "PodDisruptionBudget" in version "policy/v1beta1"`:                       "does not serve the API version",
		`Secret "typed" is invalid: type: Invalid value: "x": field is immutable`:                     "never changes",
		`spec: Forbidden: updates to statefulset spec for fields other than`:                          "never changes",
		"failed to create typed patch object (shop/web): .spec.replica: field not declared in schema": "unknown to the API server",
		`failed calling webhook "v.example.com": Post "https://x": no endpoints available`:            "does not answer",
		`admission webhook "v.example.com" denied the request: no latest tag`:                         "A policy of the member",
		`pods "web" is forbidden: violates PodSecurity "restricted:latest": privileged`:               "A policy of the member",
		`pods "web" is forbidden: exceeded quota: q`:                                                  "ResourceQuota",
		`User "system:serviceaccount:shop:web" cannot create resource "configmaps" in API group ""`:   "lacks a right",
		"timed out": "Helm cannot install",
	} {
		deployment := &fleet.BundleDeployment{ObjectMeta: named, Status: fleet.BundleDeploymentStatus{Conditions: []fleet.Condition{
			{Type: "Deployed", Status: "False", Reason: "DeployFailed", Message: message},
		}}}
		found := Of(deployment)
		if len(found) != 1 || !strings.Contains(found[0].Means, want) || found[0].Remedy == "" {
			t.Errorf("%s: %+v", message, found)
		}
	}
}

// TestEqualFindingsOfDeploymentsAreShownOnce has a Bundle with one cause on two members, and
// another one on a third.
func TestEqualFindingsOfDeploymentsAreShownOnce(t *testing.T) {
	finding := func(name, message string) Finding {
		return Finding{Problem: Problem{Kind: kindBundleDeployment, Namespace: name, Name: "web", Reason: "DeployFailed", Message: message}}
	}
	got := Alike([]Finding{finding("a", "x"), finding("b", "y"), finding("c", "x"), finding("d", ""), finding("e", "")})
	want := []Same{{finding("a", "x"), 1}, {finding("b", "y"), 0}, {finding("d", ""), 0}, {finding("e", ""), 0}}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Finding{})); diff != "" {
		t.Error(diff)
	}
}

// TestEqualFailuresOfMembersAreOneFinding has a cause on four members, and another one on a fifth.
func TestEqualFailuresOfMembersAreOneFinding(t *testing.T) {
	failing := func(member, message string) placement.PerClusterStatus {
		return placement.PerClusterStatus{ClusterName: member, FailedPlacements: []placement.FailedPlacement{{
			ResourceIdentifier: placement.ResourceIdentifier{Kind: "Deployment", Namespace: "shop", Name: "web"},
			Condition:          condition("Available", "False", "ManifestNotAvailableYet", message),
		}}}
	}
	const pull, quota = "Available: 0/1; container web: ErrImagePull: not found", "Available: 0/1; FailedCreate: exceeded quota: q"
	var got []string
	for _, f := range Of(&placement.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Status: placement.PlacementStatus{
		Conditions: []metav1.Condition{condition("ClusterResourcePlacementScheduled", "True", "SchedulingPolicyFulfilled", "")},
		PlacementStatuses: []placement.PerClusterStatus{
			failing("a", pull), failing("b", quota), failing("c", pull), failing("d", pull), failing("e", pull),
		},
	}}) {
		got = append(got, f.Message)
	}
	want := []string{"Deployment shop/web on a, c, d and 1 more: " + pull, "Deployment shop/web on b: " + quota}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestARolloutThatWaitsComesAfterItsCause has a change that one member refuses, so two others wait.
func TestARolloutThatWaitsComesAfterItsCause(t *testing.T) {
	waiting := func(member string) placement.PerClusterStatus {
		return placement.PerClusterStatus{ClusterName: member, Conditions: []metav1.Condition{
			condition("RolloutStarted", "False", "RolloutNotStartedYet", "waits for its turn"),
		}}
	}
	refused := placement.PerClusterStatus{ClusterName: "a", FailedPlacements: []placement.FailedPlacement{{
		ResourceIdentifier: placement.ResourceIdentifier{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "web"},
		Condition:          condition("Applied", "False", "ImmutableField", "field is immutable when `immutable` is set"),
	}}}
	var got []string
	for _, f := range Of(&placement.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Status: placement.PlacementStatus{
		Conditions: []metav1.Condition{
			condition("ClusterResourcePlacementScheduled", "True", "SchedulingPolicyFulfilled", ""),
			condition("ClusterResourcePlacementRolloutStarted", "False", "RolloutNotStartedYet", "b, c: waits for its turn"),
		},
		PlacementStatuses: []placement.PerClusterStatus{waiting("b"), refused, waiting("c")},
	}}) {
		got = append(got, f.Reason+": "+f.Message)
	}
	want := []string{"ImmutableField: ConfigMap shop/web on a: field is immutable when `immutable` is set",
		"RolloutNotStartedYet: b, c: waits for its turn"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
