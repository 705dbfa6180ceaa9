package importer

import (
	"cmp"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// Hub is where a Cluster's agent reaches the hub: as the settings say, unless the kubeconfig Secret that it was imported with says
// otherwise.
func Hub(cluster *fleet.Cluster, settings *clusterv1beta1.HubAddress) *clusterv1beta1.HubAddress {
	handed := cluster.Status.Import
	if cluster.Spec.KubeConfigSecret == "" || handed == nil || handed.APIServerURL == "" && handed.APIServerCA == "" {
		return settings
	}
	override := clusterv1beta1.HubAddress{}
	if settings != nil {
		override = *settings
	}
	override.APIServerURL = cmp.Or(handed.APIServerURL, override.APIServerURL)
	override.APIServerCA = cmp.Or(handed.APIServerCA, override.APIServerCA)
	return &override
}
