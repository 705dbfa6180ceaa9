package sourcestatus

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// deployment is one that an agent has reported as ready.
func deployment(cluster string, resources ...string) *fleet.BundleDeployment {
	d := &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
		fleet.LabelClusterNamespace: "clusters", fleet.LabelCluster: cluster}}}
	d.Spec.DeploymentID, d.Spec.StagedDeploymentID = "s-1:1", "s-1:1"
	d.Status = fleet.BundleDeploymentStatus{AppliedDeploymentID: "s-1:1", Ready: true, NonModified: true,
		Conditions:     []fleet.Condition{{Type: fleet.ConditionReady, Status: "True"}},
		Display:        fleet.BundleDeploymentDisplay{State: "Ready"},
		ResourceCounts: fleet.ResourceCounts{Ready: len(resources), DesiredReady: len(resources)}}
	for _, name := range resources {
		d.Status.Resources = append(d.Status.Resources, fleet.DeployedResource{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop",
			Name: name})
	}
	return d
}

// resultOf counts deployments.
func resultOf(deployments ...*fleet.BundleDeployment) *fleet.SourceResources {
	t := newTally()
	for _, d := range deployments {
		t.add(d)
	}
	return t.result()
}

func resource(name, state string, per fleet.PerClusterState) fleet.SourceResource {
	return fleet.SourceResource{APIVersion: "apps/v1", Kind: "Deployment", Type: "apps.deployment", ID: "shop/" + name, Namespace: "shop",
		Name: name, State: state, PerClusterState: &per}
}

func TestResourcesOfASource(t *testing.T) {
	both := []string{"clusters/a", "clusters/b"}
	change := func(d *fleet.BundleDeployment, edit func(*fleet.BundleDeployment)) *fleet.BundleDeployment {
		edit(d)
		return d
	}
	down := resource("web", "NotReady", fleet.PerClusterState{Ready: []string{"clusters/a"}, NotReady: []string{"clusters/b"}})
	down.Message, down.Transitioning = "0 of 1 replicas", true
	failed := resource("web", "ErrApplied", fleet.PerClusterState{ErrApplied: []string{"clusters/a"}})
	failed.Message, failed.Error = "no such chart", true
	waits := resource("web", "WaitApplied", fleet.PerClusterState{WaitApplied: []string{"clusters/a"}})
	waits.Message, waits.Transitioning = "the agent has not reported it yet", true
	lost := resource("web", "Unknown", fleet.PerClusterState{Unknown: []string{"clusters/a"}})
	lost.Message = "the agent has not confirmed it lately"
	for _, c := range []struct {
		name        string
		deployments []*fleet.BundleDeployment
		ready       int
		want        []fleet.SourceResource
	}{
		{"nothing is deployed", nil, 0, nil},
		{"all are ready", []*fleet.BundleDeployment{deployment("b", "web"), deployment("a", "web")}, 2,
			[]fleet.SourceResource{resource("web", "Ready", fleet.PerClusterState{Ready: both})}},
		{"one is not ready on one Cluster, and comes first",
			[]*fleet.BundleDeployment{deployment("a", "db", "web"), change(deployment("b", "db", "web"), func(d *fleet.BundleDeployment) {
				d.Status.Ready, d.Status.Display.State = false, "NotReady"
				d.Status.NonReadyStatus = []fleet.NonReadyStatus{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web",
					Summary: fleet.ReadinessSummary{Transitioning: true, Message: []string{"0 of 1 replicas"}}}}
			})}, 1, []fleet.SourceResource{down, resource("db", "Ready", fleet.PerClusterState{Ready: both})}},
		{"one is missing, and one is left over", []*fleet.BundleDeployment{change(deployment("a", "web"), func(d *fleet.BundleDeployment) {
			d.Status.NonModified, d.Status.Display.State = false, "Modified"
			d.Status.ModifiedStatus = []fleet.ModifiedStatus{
				{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", Create: true},
				{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "old", Delete: true},
			}
		})}, 0, []fleet.SourceResource{resource("web", "Missing", fleet.PerClusterState{Missing: both[:1]}),
			resource("old", "Orphaned", fleet.PerClusterState{Orphaned: both[:1]})}},
		{"a deployment failed", []*fleet.BundleDeployment{change(deployment("a", "web"), func(d *fleet.BundleDeployment) {
			d.Spec.DeploymentID, d.Spec.StagedDeploymentID, d.Status.Display.State = "s-2:1", "s-2:1", "ErrApplied"
			d.Status.Conditions = []fleet.Condition{{Type: fleet.ConditionDeployed, Status: "False", Message: "no such chart"}}
		})}, 0, []fleet.SourceResource{failed}},
		{"a new version is on its way, and the columns show the earlier one", []*fleet.BundleDeployment{
			change(deployment("a", "web"), func(d *fleet.BundleDeployment) { d.Spec.DeploymentID, d.Spec.StagedDeploymentID = "s-2:1", "s-2:1" }),
		}, 0, []fleet.SourceResource{waits}},
		{"the agent is gone", []*fleet.BundleDeployment{change(deployment("a", "web"), func(d *fleet.BundleDeployment) {
			d.Status.Display.State = "NotReady"
		})}, 0, []fleet.SourceResource{lost}},
	} {
		got := resultOf(c.deployments...)
		if diff := cmp.Diff(c.want, got.Resources); diff != "" || got.ReadyClusters != c.ready {
			t.Errorf("%s: %d Clusters are ready (-want +got):\n%s", c.name, got.ReadyClusters, diff)
		}
	}
}

func TestReadyResourcesOfALostAgentAreUnknown(t *testing.T) {
	lost := deployment("a", "web", "db")
	lost.Status.Display.State = "NotReady"
	got := resultOf(lost, deployment("b", "web", "db"))
	want := map[string]fleet.ResourceCounts{"clusters/a": {Unknown: 2, DesiredReady: 2}, "clusters/b": {Ready: 2, DesiredReady: 2}}
	if diff := cmp.Diff(want, got.PerClusterResourceCounts); diff != "" {
		t.Error(diff)
	}
	if all := (fleet.ResourceCounts{Ready: 2, Unknown: 2, DesiredReady: 4}); got.ResourceCounts != all {
		t.Errorf("%+v", got.ResourceCounts)
	}
}

// TestAStatusIsBounded: thousands of Clusters, and a member that writes names as long as it may.
func TestAStatusIsBounded(t *testing.T) {
	tally := newTally()
	for i := range 3000 {
		d := deployment(fmt.Sprintf("c%04d", i), "web", "db")
		if i == 2999 {
			d.Status.Ready, d.Status.Display.State = false, "NotReady"
		}
		tally.add(d)
	}
	long := fmt.Sprintf("%0250d", 7)
	var names []string
	for i := range 2000 {
		names = append(names, fmt.Sprintf("%s%03d", long, i))
	}
	tally.add(deployment(long, names...))
	got := tally.result()
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 400<<10 || len(got.Resources) > maxResources || len(got.PerClusterResourceCounts) != maxClusters {
		t.Errorf("%d bytes, %d resources, %d Clusters", len(text), len(got.Resources), len(got.PerClusterResourceCounts))
	}
	if got.DesiredReadyClusters != 3001 || got.ReadyClusters != 3000 || len(got.ResourceErrors) != 2 {
		t.Errorf("%d of %d Clusters are ready: %v", got.ReadyClusters, got.DesiredReadyClusters, got.ResourceErrors)
	}
	if _, named := got.PerClusterResourceCounts["clusters/c2999"]; !named {
		t.Error("the Cluster with a problem is not named")
	}
}
