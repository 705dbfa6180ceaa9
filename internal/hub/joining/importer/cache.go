package importer

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/hub/runtime/kubeconfig"
	"github.com/muster-fleet/muster/internal/kube"
)

// notKubeconfigs lists frequent types of Secrets without kubeconfigs.
var notKubeconfigs = []string{
	"helm.sh/release.v1", "helm.sh/release.v2", string(corev1.SecretTypeServiceAccountToken), string(corev1.SecretTypeTLS),
	string(corev1.SecretTypeDockerConfigJson), fleet.SecretTypeValues, fleet.SecretTypeCredential, fleet.SecretTypeLastingToken,
	"fleet.cattle.io/bundle-deployment/v1alpha1",
}

// NewSecretCache returns a cache of all Secrets that may hold a kubeconfig. Through it, the hub
// notices changes. Users' Secrets carry no label of Muster's, so the cache watches all namespaces.
// It keeps only name and version: about 540 bytes each.
func NewSecretCache(ctx context.Context, mgr ctrl.Manager) (cache.Cache, error) {
	others := make([]fields.Selector, 0, len(notKubeconfigs))
	for _, kind := range notKubeconfigs {
		others = append(others, fields.OneTermNotEqualSelector("type", kind))
	}
	return controller.NewCache(ctx, mgr, "the Secrets that may be kubeconfigs", map[client.Object]cache.ByObject{
		kube.CoreMetadata("Secret"): {Field: fields.AndSelectors(others...), Transform: controller.OnlyIdentity},
	})
}

// secretKeys indexes a Cluster by its kubeconfig Secret.
func secretKeys(cluster *fleet.Cluster) []string {
	if cluster.Spec.KubeConfigSecret == "" {
		return nil
	}
	return []string{kubeconfig.SecretOf(cluster).String()}
}

// clusterIDs indexes a Cluster by the UID of the cluster's namespace kube-system. An import has
// found the UID, or an agent has sent it as its client ID. Neither is a proof: an agent of Rancher
// Fleet may write the status, and the holder of a token any client ID.
func clusterIDs(cluster *fleet.Cluster) []string {
	ids := []string{membership.ClientID(cluster)}
	if cluster.Spec.KubeConfigSecret != "" && cluster.Status.Import != nil {
		ids = append(ids, cluster.Status.Import.ClusterID)
	}
	return ids
}
