package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterResourcePlacementStatus is a copy of the status of the ClusterResourcePlacement of its
// name, in the Namespace that the placement selects, for those who may read that namespace and no
// ClusterResourcePlacements. It is there if the placement has statusReportingScope
// NamespaceAccessible, and it is written by the hub only.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=clusterresourceplacementstatuses,shortName=crps,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Last-Updated",type=string,JSONPath=`.lastUpdatedTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterResourcePlacementStatus struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// SourceStatus is the status of the ClusterResourcePlacement, without the condition that says
	// whether this copy was written.
	// +required
	SourceStatus PlacementStatus `json:"sourceStatus"`
	// LastUpdatedTime is when the hub wrote this copy.
	// +required
	LastUpdatedTime metav1.Time `json:"lastUpdatedTime"`
}

// ClusterResourcePlacementStatusList is a list of ClusterResourcePlacementStatuses.
//
// +kubebuilder:object:root=true
type ClusterResourcePlacementStatusList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterResourcePlacementStatus `json:"items"`
}
