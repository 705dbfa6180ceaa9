package clustergroup

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/fleet/membership"
)

// gitRepos maps the GitRepos of a group's Clusters to true if they are ready on all of them.
type gitRepos map[types.NamespacedName]bool

// add counts a deployment of a GitRepo. The hub shows another state than the report if the agent is
// gone.
func (g gitRepos) add(d *fleet.BundleDeployment) {
	name := types.NamespacedName{Namespace: d.Labels[fleet.LabelBundleNamespace], Name: d.Labels[fleet.LabelRepoName]}
	if name.Name == "" {
		return
	}
	shown := d.Status.Display.State
	ready := delivery.EffectiveState(d) == fleet.StateReady && (shown == "" || shown == string(fleet.StateReady))
	others, known := g[name]
	g[name] = ready && (others || !known)
}

// ready counts the GitRepos with all Clusters ready.
func (g gitRepos) ready() (count int) {
	for _, ready := range g {
		if ready {
			count++
		}
	}
	return count
}

// gitRepos reads the deployments on the Clusters. Several Clusters have the same GitRepos, so the
// sum of their counts would be too large.
func (c *Controller) gitRepos(ctx context.Context, clusters []fleet.Cluster) (gitRepos, error) {
	found := gitRepos{}
	for i := range clusters {
		namespace := membership.DeliveryNamespace(&clusters[i])
		if clusters[i].Status.DesiredReadyGitRepos == 0 || namespace == "" {
			continue
		}
		var list fleet.BundleDeploymentList
		if err := c.Client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing the BundleDeployments of %s: %w", namespace, err)
		}
		for j := range list.Items {
			found.add(&list.Items[j])
		}
	}
	return found, nil
}
