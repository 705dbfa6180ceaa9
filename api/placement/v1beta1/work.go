package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/muster-fleet/muster/api/limits"
)

// Work lists manifests for a member, in its member namespace on the hub. The hub writes its spec,
// labels and annotations, the member's agent its status and one finalizer. Unlisted fields of an
// unmodified KubeFleet member agent are kept.
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
	// Workload has the manifests to apply.
	// +optional
	Workload WorkloadTemplate `json:"workload,omitempty"`
	// ApplyStrategy for the manifests. Default: the default of the member's agent.
	// +optional
	ApplyStrategy *ApplyStrategy `json:"applyStrategy,omitempty"`
	// DeleteStrategy defines the removal after the Work is deleted. Default: the objects are removed.
	// A Muster addition: other agents always remove them.
	// +optional
	DeleteStrategy *DeleteStrategy `json:"deleteStrategy,omitempty"`
}

// WorkloadTemplate has the manifests to apply.
type WorkloadTemplate struct {
	// Manifests apply in their order.
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

// WorkStatus is written by the member's agent only. Its maxima are well above the writes of agents.
// They do not keep it small: each manifest has an entry, with messages and differences of any
// length from the member's API server. The limit of etcd, 1.5 MiB, bounds the whole object.
//
// +kubebuilder:pruning:PreserveUnknownFields
type WorkStatus struct {
	// Conditions: Applied and Available of all manifests together, or DiffReported if they are only
	// compared.
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

// ManifestCondition is the state of one manifest.
//
// +kubebuilder:pruning:PreserveUnknownFields
type ManifestCondition struct {
	// Identifier names the manifest.
	// +optional
	Identifier WorkResourceIdentifier `json:"identifier,omitempty"`
	// Conditions: Applied and Available of this manifest, or DiffReported if it is only compared.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// DriftDetails are the changes of the object on the member since it was applied.
	// +optional
	DriftDetails *DriftDetails `json:"driftDetails,omitempty"`
	// DiffDetails are the differences between the manifest and an object that was not applied.
	// +optional
	DiffDetails *DiffDetails `json:"diffDetails,omitempty"`
}

// DriftDetails are the changes of an object since it was applied.
//
// +kubebuilder:pruning:PreserveUnknownFields
type DriftDetails struct {
	// ObservationTime is when the agent first saw it as it is described here.
	// +optional
	ObservationTime metav1.Time `json:"observationTime,omitempty"`
	// ObservedInMemberClusterGeneration is the object's metadata.generation on the member at that
	// time; 0 if its kind has none.
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

// DiffDetails are the differences between a manifest and an object that was not applied.
//
// +kubebuilder:pruning:PreserveUnknownFields
type DiffDetails struct {
	// ObservationTime is when the agent first saw it as it is described here.
	// +optional
	ObservationTime metav1.Time `json:"observationTime,omitempty"`
	// ObservedInMemberClusterGeneration is the object's metadata.generation on the member at that
	// time; null if the object does not exist.
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
	// Path of the field as a JSON pointer; / if the object does not exist.
	// +optional
	Path limits.Line `json:"path,omitempty"`
	// ValueInHub is the value in the manifest; empty if the field is absent. Values of a Secret are
	// hidden.
	// +optional
	ValueInHub limits.Document `json:"valueInHub,omitempty"`
	// ValueInMember is the value in the object; empty if the field is absent. Values of a Secret are
	// hidden.
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
	// Resource is the plural name in the API; empty if the member does not serve the kind.
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
