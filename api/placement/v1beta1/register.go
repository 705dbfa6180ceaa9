package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of this package.
var GroupVersion = schema.GroupVersion{Group: "placement.kubernetes-fleet.io", Version: "v1beta1"}

// AddToScheme registers the types of this package.
var AddToScheme = (&runtime.SchemeBuilder{addKnownTypes}).AddToScheme

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&Work{}, &WorkList{},
		&AppliedWork{}, &AppliedWorkList{},
		&ClusterResourcePlacement{}, &ClusterResourcePlacementList{},
		&ResourcePlacement{}, &ResourcePlacementList{},
		&ClusterResourcePlacementStatus{}, &ClusterResourcePlacementStatusList{},
		&ClusterResourceBinding{}, &ClusterResourceBindingList{}, &ResourceBinding{}, &ResourceBindingList{},
		&ResourceEnvelope{}, &ResourceEnvelopeList{}, // v1beta1 only
		&ClusterResourceEnvelope{}, &ClusterResourceEnvelopeList{}, // v1beta1 only
		&ResourceOverride{}, &ResourceOverrideList{},
		&ClusterResourceOverride{}, &ClusterResourceOverrideList{},
		&ClusterResourcePlacementEviction{}, &ClusterResourcePlacementEvictionList{}, // v1beta1 only
		&ClusterResourcePlacementDisruptionBudget{}, &ClusterResourcePlacementDisruptionBudgetList{}, // v1beta1 only
		&ClusterStagedUpdateRun{}, &ClusterStagedUpdateRunList{}, &StagedUpdateRun{}, &StagedUpdateRunList{},
		&ClusterStagedUpdateStrategy{}, &ClusterStagedUpdateStrategyList{}, &StagedUpdateStrategy{}, &StagedUpdateStrategyList{},
		&ClusterApprovalRequest{}, &ClusterApprovalRequestList{}, &ApprovalRequest{}, &ApprovalRequestList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
