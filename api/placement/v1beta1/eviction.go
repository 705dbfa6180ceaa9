package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// These kinds are served in this version only, as KubeFleet does.

// ClusterResourcePlacementEviction removes a ClusterResourcePlacement from one member, once. The
// placement may pick the member again. To prevent that, taint the member first.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=clusterresourceplacementevictions,scope=Cluster,shortName=crpe,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Valid",type=string,JSONPath=`.status.conditions[?(@.type=="Valid")].status`
// +kubebuilder:printcolumn:name="Executed",type=string,JSONPath=`.status.conditions[?(@.type=="Executed")].status`
type ClusterResourcePlacementEviction struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the spec of an eviction is immutable: create another one"
	Spec PlacementEvictionSpec `json:"spec"`
	// +optional
	Status PlacementEvictionStatus `json:"status,omitempty"`
}

// ClusterResourcePlacementEvictionList is a list of ClusterResourcePlacementEvictions.
//
// +kubebuilder:object:root=true
type ClusterResourcePlacementEvictionList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterResourcePlacementEviction `json:"items"`
}

// PlacementEvictionSpec is the desired state of an eviction. Users write it once; it is immutable.
type PlacementEvictionSpec struct {
	// placementName is the name of the ClusterResourcePlacement.
	// +required
	// +kubebuilder:validation:MaxLength=255
	PlacementName string `json:"placementName"`
	// clusterName is the name of a MemberCluster, or <workspace>/<name> of a Cluster.
	// +required
	// +kubebuilder:validation:MaxLength=255
	ClusterName string `json:"clusterName"`
}

// PlacementEvictionStatus is the observed state of an eviction. Only the hub writes it.
type PlacementEvictionStatus struct {
	// conditions: Valid, Executed. Valid reports whether the member can be evicted, Executed whether
	// it was evicted. Neither changes after it is set.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClusterResourcePlacementDisruptionBudget limits evictions of the ClusterResourcePlacement with
// the same name. It bounds the number of members without available resources.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=clusterresourceplacementdisruptionbudgets,scope=Cluster,shortName=crpdb,categories={fleet,fleet-placement}
type ClusterResourcePlacementDisruptionBudget struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec PlacementDisruptionBudgetSpec `json:"spec"`
}

// ClusterResourcePlacementDisruptionBudgetList is a list of
// ClusterResourcePlacementDisruptionBudgets.
//
// +kubebuilder:object:root=true
type ClusterResourcePlacementDisruptionBudgetList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterResourcePlacementDisruptionBudget `json:"items"`
}

// PlacementDisruptionBudgetSpec is the desired state of a disruption budget. Users write it.
// Percentages refer to the numberOfClusters of PickN, rounded up. With PickAll only a number in
// minAvailable has an effect.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.maxUnavailable) && has(self.minAvailable))",message="maxUnavailable and minAvailable exclude each other"
type PlacementDisruptionBudgetSpec struct {
	// maxUnavailable is the maximum number or percentage of unavailable members after an eviction.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == string ? self.matches('^(100|[0-9]{1,2})%$') : self >= 0",message="must be a number that is not negative or a percentage up to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// minAvailable is the minimum number or percentage of available members after an eviction.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == string ? self.matches('^(100|[0-9]{1,2})%$') : self >= 0",message="must be a number that is not negative or a percentage up to 100%"
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`
}

// Condition types and reasons of evictions.
const (
	// ConditionEvictionValid reports whether the member can be evicted.
	ConditionEvictionValid = "Valid"
	// ConditionEvictionExecuted reports whether the eviction was executed.
	ConditionEvictionExecuted = "Executed"

	// ReasonEvictionValid and the others are the reasons of these conditions.
	ReasonEvictionValid       = "ClusterResourcePlacementEvictionValid"
	ReasonEvictionInvalid     = "ClusterResourcePlacementEvictionInvalid"
	ReasonEvictionExecuted    = "ClusterResourcePlacementEvictionExecuted"
	ReasonEvictionNotExecuted = "ClusterResourcePlacementEvictionNotExecuted"
)
