package explain

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
