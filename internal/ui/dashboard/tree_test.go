package dashboard

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

func TestTheTreeOfAMemberHasProblemsFirst(t *testing.T) {
	resource := func(kind, name string) fleet.DeployedResource {
		return fleet.DeployedResource{Kind: kind, Namespace: "shop", Name: name}
	}
	deployment := func(name string, ready corev1.ConditionStatus, status fleet.BundleDeploymentStatus) client.Object {
		status.Conditions = []fleet.Condition{{Type: fleet.ConditionReady, Status: ready, Reason: "NotReady", Message: "as it is"}}
		return &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "member", Name: name, Labels: map[string]string{
			fleet.LabelBundleName: name, fleet.LabelBundleNamespace: "clusters",
		}}, Status: status}
	}
	work := &placement.Work{ObjectMeta: metav1.ObjectMeta{Name: "w", Labels: map[string]string{placement.LabelParentCRP: "cart"}}}
	work.Status.ManifestConditions = []placement.ManifestCondition{{
		Identifier:   placement.WorkResourceIdentifier{Kind: "Secret", Name: "key"},
		DriftDetails: &placement.DriftDetails{ObservedDrifts: []placement.PatchDetail{{Path: "/data/key", ValueInHub: "a", ValueInMember: "b"}}},
	}}
	got := deliveredTree([]client.Object{
		deployment("well", corev1.ConditionTrue, fleet.BundleDeploymentStatus{
			Release: "shop/well:1", Resources: []fleet.DeployedResource{resource("Service", "web")},
		}),
		deployment("ill", corev1.ConditionFalse, fleet.BundleDeploymentStatus{
			Release:   "shop/ill:2",
			Resources: []fleet.DeployedResource{resource("ConfigMap", "c"), resource("Deployment", "web"), resource("Service", "web")},
			NonReadyStatus: []fleet.NonReadyStatus{{
				Kind: "Deployment", Namespace: "shop", Name: "web",
				Summary: fleet.ReadinessSummary{State: "InProgress", Message: []string{"0/1"}},
			}},
			ModifiedStatus: []fleet.ModifiedStatus{
				{Kind: "Service", Namespace: "shop", Name: "web", Patch: `{"spec":{"type":"ClusterIP","extra":null}}`},
				{Kind: "Job", Namespace: "shop", Name: "gone", Create: true},
			},
		}), work,
	})
	shop := func(kind, state, why string, diff ...difference) branch {
		return branch{Name: kind, State: state, Why: why, Diff: diff}
	}
	want := []branch{
		{Name: "Bundle clusters/ill", Path: "/deliveries/bundles/clusters/ill", State: "NotReady", Why: "NotReady: as it is", Below: []branch{
			{Name: "Release shop/ill:2", Below: []branch{
				shop("Deployment shop/web", "InProgress", "0/1"), shop("Job shop/gone", "Missing", ""),
				shop("Service shop/web", "Modified", "", difference{Path: ".spec.extra", Member: "set on the member only"},
					difference{Path: ".spec.type", Wanted: `"ClusterIP"`}),
				shop("ConfigMap shop/c", "Ready", ""),
			}},
		}},
		{Name: "ClusterResourcePlacement cart", Path: "/deliveries/clusterresourceplacements/cart", State: "NotReady", Why: "", Below: []branch{
			{Name: "Work w", Below: []branch{shop("Secret key", "Modified", "", difference{"/data/key", "REDACTED", "REDACTED"})}},
		}},
		{Name: "Bundle clusters/well", Path: "/deliveries/bundles/clusters/well", State: "Ready", Below: []branch{
			{Name: "Release shop/well:1", Below: []branch{shop("Service shop/web", "Ready", "")}},
		}},
	}
	want[1].State, want[1].Why = got[1].State, got[1].Why // the explanation has its own tests
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestYAMLIsSplitForHighlighting(t *testing.T) {
	want := []yamlLine{{"", "metadata:", ""}, {"  ", "name:", " web"}, {"  - ", "type:", ` "a: b"`}, {"  - ", "", `"x: y"`}, {"", "", "plain"}}
	if diff := cmp.Diff(want, yamlLines("metadata:\n  name: web\n  - type: \"a: b\"\n  - \"x: y\"\nplain\n")); diff != "" {
		t.Error(diff)
	}
}
