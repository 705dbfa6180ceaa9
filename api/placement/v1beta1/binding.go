package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/api/limits"
)

// ClusterResourceBinding shows one picked member of a ClusterResourcePlacement, and the progress
// there. Only the hub writes it, for programs that list bindings, such as kubectl fleet
// draincluster. No decision of the hub depends on it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=clusterresourcebindings,scope=Cluster,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.targetCluster`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.spec.state`
// +kubebuilder:printcolumn:name="Applied",type=string,JSONPath=`.status.conditions[?(@.type=="Applied")].status`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterResourceBinding struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec ResourceBindingSpec `json:"spec"`
	// +optional
	Status ResourceBindingStatus `json:"status,omitempty"`
}

// ClusterResourceBindingList is a list of ClusterResourceBindings.
//
// +kubebuilder:object:root=true
type ClusterResourceBindingList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterResourceBinding `json:"items"`
}

// ResourceBinding shows one picked member of a ResourcePlacement, and the progress there. It is in
// the namespace of the placement. No decision of the hub depends on it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=resourcebindings,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.targetCluster`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.spec.state`
// +kubebuilder:printcolumn:name="Applied",type=string,JSONPath=`.status.conditions[?(@.type=="Applied")].status`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ResourceBinding struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec ResourceBindingSpec `json:"spec"`
	// +optional
	Status ResourceBindingStatus `json:"status,omitempty"`
}

// ResourceBindingList is a list of ResourceBindings.
//
// +kubebuilder:object:root=true
type ResourceBindingList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceBinding `json:"items"`
}

// BindingState is the progress of a binding.
//
// +kubebuilder:validation:MaxLength=64
type BindingState string

const (
	// BindingScheduled means: the member is picked and has nothing yet.
	BindingScheduled BindingState = "Scheduled"
	// BindingBound means: the member has Works of the placement.
	BindingBound BindingState = "Bound"
	// BindingUnscheduled means: the member loses its Works.
	BindingUnscheduled BindingState = "Unscheduled"
)

// ResourceBindingSpec names the member. Other fields, written by KubeFleet's hub, are kept.
//
// +kubebuilder:pruning:PreserveUnknownFields
type ResourceBindingSpec struct {
	// state is Scheduled, Bound or Unscheduled.
	// +required
	State BindingState `json:"state"`
	// targetCluster is the name of a MemberCluster, or <workspace>/<name> of a Cluster.
	// +required
	TargetCluster limits.Line `json:"targetCluster"`
	// resourceSnapshotName is the current or next revision of the resources on the member:
	// <placement>-<resource index>-snapshot. An object with this name may not exist.
	// +optional
	ResourceSnapshotName limits.Line `json:"resourceSnapshotName,omitempty"`
}

// ResourceBindingStatus is the progress of the placement on the member. Other fields, written by
// KubeFleet's hub, are kept.
//
// +kubebuilder:pruning:PreserveUnknownFields
type ResourceBindingStatus struct {
	// conditions are the conditions of the placement on this member: RolloutStarted, Overridden and
	// WorkSynchronized, then Applied and Available, or DiffReported.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
