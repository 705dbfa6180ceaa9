package bundle

import (
	"maps"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery/chart"
	"github.com/muster-fleet/muster/internal/deploy/release"
)

// ofAgent keeps only the agent's own release.
func ofAgent(found release.Found) release.Found {
	maps.DeleteFunc(found.Releases, func(_ string, releases []release.Summary) bool { return !releases[0].Agent })
	found.Unreadable = nil
	return found
}

// wantedRelease returns the release specified by a BundleDeployment. For the agent of a
// MemberCluster this is always the agent's own: the hub does not know its name.
func (d *Deployer) wantedRelease(deployment *fleet.BundleDeployment) release.ID {
	if d.OnlyAgent {
		return d.Cluster.Agent.ID
	}
	name, namespace := chart.Release(deployment.Name, deployment.Spec.Options)
	return release.ID{Namespace: namespace, Name: name}
}

// isAgent reports whether a BundleDeployment deploys the agent itself.
func isAgent(deployment *fleet.BundleDeployment) bool {
	return deployment != nil && deployment.Labels[fleet.LabelAgent] != ""
}

// agentIsWell reports whether this is the agent's own release and healthy. Such a release needs no
// deployer.
func (s observation) agentIsWell() bool {
	return isAgent(s.deployment) && s.unwatched == "" && s.objects.Changed == 0 && s.objects.Counts.NotReady == 0 &&
		s.objects.Counts.Missing == 0
}
