package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/muster-fleet/muster/api/limits"
)

// Work is what a member has to apply, in its member namespace on the hub. Its spec, labels and
// annotations are the hub's, its status and one finalizer those of the member's agent. Fields that
// an unmodified KubeFleet member agent writes and that are not listed are kept.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=works,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Applied",type=string,JSONPath=`.status.conditions[?(@.type=="Applied")].status`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Work struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec WorkSpec `json:"spec,omitempty"`
	// +optional
	Status WorkStatus `json:"status,omitempty"`
}

// WorkSpec is written by the hub only.
//
// +kubebuilder:pruning:PreserveUnknownFields
type WorkSpec struct {
	// Workload is what to apply.
	// +optional
	Workload WorkloadTemplate `json:"workload,omitempty"`
	// ApplyStrategy is how to apply it; default: as the member's agent does by default.
	// +optional
	ApplyStrategy *ApplyStrategy `json:"applyStrategy,omitempty"`
	// DeleteStrategy is what becomes of it when the Work goes; default: it is removed. A Muster
	// addition: other agents always remove it.
	// +optional
	DeleteStrategy *DeleteStrategy `json:"deleteStrategy,omitempty"`
}

// WorkloadTemplate is what to apply.
type WorkloadTemplate struct {
	// Manifests in the order in which they are applied.
	// +optional
	Manifests []Manifest `json:"manifests,omitempty"`
}

// Manifest is one object of any kind.
//
// +kubebuilder:pruning:PreserveUnknownFields
type Manifest struct {
	// RawExtension is the object as JSON.
	runtime.RawExtension `json:",inline"`
}

// WorkStatus is written by the member's agent only. Its maxima are well above what agents write,
// and do not keep it small: it has an entry for every manifest, with messages and differences as
// long as what the API server of the member says. What etcd stores, 1.5 MiB, does.
//
// +kubebuilder:pruning:PreserveUnknownFields
type WorkStatus struct {
	// Conditions: Applied and Available of all manifests together, or DiffReported if
	// they are only compared.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// ManifestConditions has an entry per manifest.
	// +optional
	// +kubebuilder:validation:MaxItems=8192
	ManifestConditions []ManifestCondition `json:"manifestConditions,omitempty"`
}

// ManifestCondition says how one manifest is.
//
// +kubebuilder:pruning:PreserveUnknownFields
type ManifestCondition struct {
	// Identifier says which manifest.
	// +optional
	Identifier WorkResourceIdentifier `json:"identifier,omitempty"`
	// Conditions: Applied and Available of this manifest, or DiffReported if it is only compared.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// DriftDetails is in what the object on the member has departed from the manifest
	// since it was applied.
	// +optional
	DriftDetails *DriftDetails `json:"driftDetails,omitempty"`
	// DiffDetails is in what an object that was not applied differs from the manifest.
	// +optional
	DiffDetails *DiffDetails `json:"diffDetails,omitempty"`
}

// DriftDetails is in what an object has departed from its manifest since it was applied.
//
// +kubebuilder:pruning:PreserveUnknownFields
type DriftDetails struct {
	// ObservationTime is when the agent first saw it as it is described here.
	// +optional
	ObservationTime metav1.Time `json:"observationTime,omitempty"`
	// ObservedInMemberClusterGeneration is the metadata.generation that the object then had on the
	// member; 0 if its kind has none.
	// +optional
	ObservedInMemberClusterGeneration int64 `json:"observedInMemberClusterGeneration"`
	// FirstDriftedObservedTime is when the agent first saw any difference.
	// +optional
	FirstDriftedObservedTime metav1.Time `json:"firstDriftedObservedTime,omitempty"`
	// ObservedDrifts are the differences; Muster's agent names at most 20.
	// +optional
	// +kubebuilder:validation:MaxItems=1024
	ObservedDrifts []PatchDetail `json:"observedDrifts,omitempty"`
}

// DiffDetails is in what an object that was not applied differs from its manifest.
//
// +kubebuilder:pruning:PreserveUnknownFields
type DiffDetails struct {
	// ObservationTime is when the agent first saw it as it is described here.
	// +optional
	ObservationTime metav1.Time `json:"observationTime,omitempty"`
	// ObservedInMemberClusterGeneration is the metadata.generation that the object then had on the
	// member; null if there is none.
	// +optional
	ObservedInMemberClusterGeneration *int64 `json:"observedInMemberClusterGeneration,omitempty"`
	// FirstDiffedObservedTime is when the agent first saw any difference.
	// +optional
	FirstDiffedObservedTime metav1.Time `json:"firstDiffedObservedTime,omitempty"`
	// ObservedDiffs are the differences; Muster's agent names at most 20.
	// +optional
	// +kubebuilder:validation:MaxItems=1024
	ObservedDiffs []PatchDetail `json:"observedDiffs,omitempty"`
}

// PatchDetail is one difference.
//
// +kubebuilder:pruning:PreserveUnknownFields
type PatchDetail struct {
	// Path of the field as a JSON pointer, / if the object is not there at all.
	// +optional
	Path limits.Line `json:"path,omitempty"`
	// ValueInHub is what the manifest says; empty if it says nothing. Of a Secret it is not shown.
	// +optional
	ValueInHub limits.Document `json:"valueInHub,omitempty"`
	// ValueInMember is what the object says; empty if it says nothing. Of a Secret it is not shown.
	// +optional
	ValueInMember limits.Document `json:"valueInMember,omitempty"`
}

// WorkResourceIdentifier names the object of a manifest.
type WorkResourceIdentifier struct {
	// Ordinal is the index of the manifest in the Work.
	// +required
	Ordinal int `json:"ordinal"`
	// Group of the API, empty for core.
	// +optional
	Group limits.Name `json:"group,omitempty"`
	// Version of the API.
	// +optional
	Version limits.Name `json:"version,omitempty"`
	// Kind of the object.
	// +optional
	Kind limits.Name `json:"kind,omitempty"`
	// Resource is the plural by which the API serves it; empty if the member does not serve the kind.
	// +optional
	Resource limits.Name `json:"resource,omitempty"`
	// Namespace of the object, empty if its kind has none.
	// +optional
	Namespace limits.Name `json:"namespace,omitempty"`
	// Name of the object.
	// +optional
	Name limits.Name `json:"name,omitempty"`
}

// WorkList is a list of Works.
//
// +kubebuilder:object:root=true
type WorkList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Work `json:"items"`
}
