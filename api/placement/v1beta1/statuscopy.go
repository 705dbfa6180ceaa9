package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterResourcePlacementStatus is a copy of the status of the ClusterResourcePlacement of the
// same name, in the Namespace that the placement selects. It serves users who may read this
// namespace but no ClusterResourcePlacements. It exists while statusReportingScope of the placement
// is NamespaceAccessible. Only the hub writes it.
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

	// sourceStatus is the status of the ClusterResourcePlacement, without the condition StatusSynced.
	// +required
	SourceStatus PlacementStatus `json:"sourceStatus"`
	// lastUpdatedTime is the time of the hub's last write of this copy.
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

// StatusReportingScope decides where users can read the status of a placement.
//
// +kubebuilder:validation:Enum=ClusterScopeOnly;NamespaceAccessible
type StatusReportingScope string

// The values of StatusReportingScope.
const (
	// ClusterScopeOnly shows it on the placement only.
	ClusterScopeOnly StatusReportingScope = "ClusterScopeOnly"
	// NamespaceAccessible also shows a copy in the Namespace that the placement selects.
	NamespaceAccessible StatusReportingScope = "NamespaceAccessible"
)
