package hub_test

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/testgit"
)

// TestAGitRepoShowsWhatItsBundlesHaveDeployed: two Clusters, and a group of both. A tenant's Bundle
// with the label of the GitRepo does not count.
func TestAGitRepoShowsWhatItsBundlesHaveDeployed(t *testing.T) {
	f := withGitOps(t)
	places := map[string]place{"c1": f.place("c1", map[string]string{"env": "prod"}), "c2": f.place("c2", map[string]string{"env": "prod"})}
	f.check(f.Create(context.Background(), &fleet.ClusterGroup{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "prod"},
		Spec: fleet.ClusterGroupSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}}}))
	forged := f.bundle("forged", configMap+"targets: [{clusterSelector: {}}]\n")
	f.change(forged, func() { forged.Labels = map[string]string{fleet.LabelRepoName: "shop"} })
	source := testgit.New(t, "shop.git")
	source.Write(map[string]string{"a.yaml": gitConfigMap("one")})
	first := source.Push("main")
	_, address, ca := source.Web("", "")
	f.gitRepo("shop", address, ca)
	f.atCommit("shop", first)
	report := func(bundle, cluster string, edit func(map[string]any)) {
		reportDeployment(t, f.Client, places[cluster].deployment(bundle, there), func(s map[string]any) {
			s["resources"] = []any{
				map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "a", "createdAt": "2026-01-02T03:04:05Z"},
				map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web"},
			}
			edit(s)
		})
	}
	for cluster := range places {
		report("forged", cluster, func(map[string]any) {})
	}
	report("shop", "c1", func(map[string]any) {})
	report("shop", "c2", func(s map[string]any) {
		s["ready"] = false
		s["nonReadyStatus"] = []any{map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web",
			"summary": map[string]any{"state": "in-progress", "transitioning": true, "message": []any{"0 of 1 replicas"}}}}
		s["resourceCounts"] = map[string]any{"ready": 1, "notReady": 1, "desiredReady": 2}
	})
	ids := []string{f.workspace + "/c1", f.workspace + "/c2"}
	f.deployedBy("shop", func(is fleet.SourceResources) bool {
		return is.DesiredReadyClusters == 2 && is.ReadyClusters == 1 && len(is.Resources) == 2 &&
			is.Resources[0].State == "NotReady" && is.Resources[0].ID == "default/web" && is.Resources[0].Type == "apps.deployment" &&
			is.Resources[0].Message == "0 of 1 replicas" && is.Resources[0].PerClusterState.NotReady[0] == ids[1] &&
			is.Resources[1].State == "Ready" && len(is.Resources[1].PerClusterState.Ready) == 2 &&
			is.ResourceCounts == fleet.ResourceCounts{Ready: 3, NotReady: 1, DesiredReady: 4} &&
			is.PerClusterResourceCounts[ids[1]] == fleet.ResourceCounts{Ready: 1, NotReady: 1, DesiredReady: 2}
	})
	f.gitReposOfGroup("prod", 0, 1)
	report("shop", "c2", func(map[string]any) {})
	ready := f.deployedBy("shop", func(is fleet.SourceResources) bool {
		return is.ReadyClusters == 2 && is.ResourceCounts.Ready == 4 && is.Resources[0].State == "Ready"
	})
	f.gitReposOfGroup("prod", 1, 1)

	// The next commit is read once, and the resources stay in the status meanwhile.
	source.Write(map[string]string{"a.yaml": gitConfigMap("two")})
	if after := f.atCommit("shop", source.Push("main")); len(after.Status.Resources) != len(ready.Status.Resources) {
		t.Errorf("%d resources are left", len(after.Status.Resources))
	}

	// Nothing is left of a Cluster that is no longer targeted.
	f.check(f.Delete(context.Background(), &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "c2"}}))
	f.deployedBy("shop", func(is fleet.SourceResources) bool {
		return is.DesiredReadyClusters == 1 && len(is.PerClusterResourceCounts) == 1
	})
}

// deployedBy waits until a GitRepo shows what it has deployed.
func (f fixture) deployedBy(name string, check func(fleet.SourceResources) bool) *fleet.GitRepo {
	f.t.Helper()
	repo := &fleet.GitRepo{}
	f.eventually("GitRepo "+name+" shows its resources", func() error {
		if err := f.get(repo, f.workspace, name); err != nil {
			return err
		}
		if !check(repo.Status.SourceResources) {
			return fmt.Errorf("it shows %+v", repo.Status.SourceResources)
		}
		return nil
	})
	return repo
}

// gitReposOfGroup waits until a ClusterGroup counts GitRepos.
func (f fixture) gitReposOfGroup(name string, ready, desired int) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("%d of %d GitRepos are ready", ready, desired), func() error {
		var group fleet.ClusterGroup
		if err := f.Get(context.Background(), client.ObjectKey{Namespace: f.workspace, Name: name}, &group); err != nil {
			return err
		}
		if is := group.Status; is.ReadyGitRepos != ready || is.DesiredReadyGitRepos != desired {
			return fmt.Errorf("%d of %d are", is.ReadyGitRepos, is.DesiredReadyGitRepos)
		}
		return nil
	})
}
