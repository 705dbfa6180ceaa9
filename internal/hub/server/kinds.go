package server

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// requireCRDs returns an error with the remedy if the API server does not serve a kind of the
// fleet.
func requireCRDs(mapper meta.RESTMapper) error {
	for _, gvk := range []schema.GroupVersionKind{
		fleet.GroupVersion.WithKind("Bundle"),
		fleet.GroupVersion.WithKind("BundleDeployment"),
		fleet.GroupVersion.WithKind("BundleNamespaceMapping"),
		fleet.GroupVersion.WithKind("Cluster"),
		fleet.GroupVersion.WithKind("ClusterGroup"),
		fleet.GroupVersion.WithKind("ClusterRegistration"),
		fleet.GroupVersion.WithKind("ClusterRegistrationToken"),
		fleet.GroupVersion.WithKind("Content"),
		fleet.GroupVersion.WithKind("GitRepo"),
		fleet.GroupVersion.WithKind("GitRepoRestriction"),
		fleet.GroupVersion.WithKind("HelmOp"),
		fleet.GroupVersion.WithKind("ImageScan"),
		fleet.GroupVersion.WithKind("Policy"),
		fleet.GroupVersion.WithKind("Schedule"),
		clusterv1beta1.GroupVersion.WithKind("InternalMemberCluster"),
		clusterv1beta1.GroupVersion.WithKind("MemberCluster"),
		placement.GroupVersion.WithKind("Work"),
		placement.GroupVersion.WithKind("ClusterResourcePlacement"),
		placement.GroupVersion.WithKind("ResourcePlacement"),
		placement.GroupVersion.WithKind("ClusterResourcePlacementStatus"),
		placement.GroupVersion.WithKind("ClusterResourceBinding"),
		placement.GroupVersion.WithKind("ResourceBinding"),
		placement.GroupVersion.WithKind("ClusterResourceOverride"),
		placement.GroupVersion.WithKind("ResourceOverride"),
		placement.GroupVersion.WithKind("ClusterResourcePlacementEviction"),
		placement.GroupVersion.WithKind("ClusterResourcePlacementDisruptionBudget"),
		placement.GroupVersion.WithKind("ClusterStagedUpdateRun"),
		placement.GroupVersion.WithKind("StagedUpdateRun"),
		placement.GroupVersion.WithKind("ClusterStagedUpdateStrategy"),
		placement.GroupVersion.WithKind("StagedUpdateStrategy"),
		placement.GroupVersion.WithKind("ClusterApprovalRequest"),
		placement.GroupVersion.WithKind("ApprovalRequest"),
	} {
		if _, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version); meta.IsNoMatchError(err) {
			return fmt.Errorf("the hub cluster does not serve %s: install the fleet-crd chart first", gvk.GroupKind())
		} else if err != nil {
			return fmt.Errorf("looking up %s: %w", gvk.GroupKind(), err)
		}
	}
	return nil
}

// serves reports whether the hub cluster serves an optional kind, and logs the consequence if not.
func serves(ctx context.Context, mgr manager.Manager, gvk schema.GroupVersionKind, without string) (bool, error) {
	_, err := mgr.GetRESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		logr.FromContextOrDiscard(ctx).Info("The hub cluster does not serve a kind: install the fleet-crd chart and restart the hub",
			"kind", gvk.GroupVersion().String()+" "+gvk.Kind, "missing", without)
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking up %s: %w", gvk.GroupKind(), err)
	}
	return true, nil
}
