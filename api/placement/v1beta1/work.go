package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/muster-fleet/muster/api/limits"
)

// Work lists manifests for a member, in its member namespace on the hub. The hub writes its spec,
// labels and annotations. The agent of the member writes its status and one finalizer. Other
// fields, written by a KubeFleet agent, are kept.
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

// WorkSpec is the desired state of a Work. Only the hub writes it.
//
// +kubebuilder:pruning:PreserveUnknownFields
type WorkSpec struct {
	// workload holds the manifests.
	// +optional
	Workload WorkloadTemplate `json:"workload,omitempty"`
	// applyStrategy defines how the agent applies the manifests. Default: the default of the agent.
	// +optional
	ApplyStrategy *ApplyStrategy `json:"applyStrategy,omitempty"`
	// deleteStrategy defines what happens to the applied objects after the Work is deleted. Default:
	// the agent removes them. A Muster addition: other agents always remove them.
	// +optional
	DeleteStrategy *DeleteStrategy `json:"deleteStrategy,omitempty"`
}

// WorkloadTemplate holds the manifests.
type WorkloadTemplate struct {
	// manifests are applied in order.
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

// WorkStatus is the observed state of a Work. Only the member's agent writes it. Its maxima are far
// above the needs of agents, and do not keep the object small. Each manifest has an entry, with
// messages and differences of any length from the member's API server. etcd limits the object to
// 1.5 MiB.
//
// +kubebuilder:pruning:PreserveUnknownFields
type WorkStatus struct {
	// conditions: Applied and Available for all manifests together, or DiffReported if they are only
	// compared.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// manifestConditions has an entry per manifest.
	// +optional
	// +kubebuilder:validation:MaxItems=8192
	ManifestConditions []ManifestCondition `json:"manifestConditions,omitempty"`
}

// ManifestCondition is the state of one manifest.
//
// +kubebuilder:pruning:PreserveUnknownFields
type ManifestCondition struct {
	// identifier names the manifest.
	// +optional
	Identifier WorkResourceIdentifier `json:"identifier,omitempty"`
	// conditions: Applied and Available for this manifest, or DiffReported if it is only compared.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// driftDetails are the changes to the object on the member after it was applied.
	// +optional
	DriftDetails *DriftDetails `json:"driftDetails,omitempty"`
	// diffDetails are the differences between the manifest and an object that was not applied.
	// +optional
	DiffDetails *DiffDetails `json:"diffDetails,omitempty"`
}

// DriftDetails are the changes to an object after it was applied.
//
// +kubebuilder:pruning:PreserveUnknownFields
type DriftDetails struct {
	// observationTime is the time when the agent first observed the current differences.
	// +optional
	ObservationTime metav1.Time `json:"observationTime,omitempty"`
	// observedInMemberClusterGeneration is the metadata.generation of the object on the member at that
	// time; 0 if its kind has none.
	// +optional
	ObservedInMemberClusterGeneration int64 `json:"observedInMemberClusterGeneration"`
	// firstDriftedObservedTime is the time when the agent first observed a difference.
	// +optional
	FirstDriftedObservedTime metav1.Time `json:"firstDriftedObservedTime,omitempty"`
	// observedDrifts are the differences. Muster's agent lists at most 20.
	// +optional
	// +kubebuilder:validation:MaxItems=1024
	ObservedDrifts []PatchDetail `json:"observedDrifts,omitempty"`
}

// DiffDetails are the differences between a manifest and an object that was not applied.
//
// +kubebuilder:pruning:PreserveUnknownFields
type DiffDetails struct {
	// observationTime is the time when the agent first observed the current differences.
	// +optional
	ObservationTime metav1.Time `json:"observationTime,omitempty"`
	// observedInMemberClusterGeneration is the metadata.generation of the object on the member at that
	// time; null if the object does not exist.
	// +optional
	ObservedInMemberClusterGeneration *int64 `json:"observedInMemberClusterGeneration,omitempty"`
	// firstDiffedObservedTime is the time when the agent first observed a difference.
	// +optional
	FirstDiffedObservedTime metav1.Time `json:"firstDiffedObservedTime,omitempty"`
	// observedDiffs are the differences. Muster's agent lists at most 20.
	// +optional
	// +kubebuilder:validation:MaxItems=1024
	ObservedDiffs []PatchDetail `json:"observedDiffs,omitempty"`
}

// PatchDetail is one difference.
//
// +kubebuilder:pruning:PreserveUnknownFields
type PatchDetail struct {
	// path is the path of the field as a JSON pointer; / if the object does not exist.
	// +optional
	Path limits.Line `json:"path,omitempty"`
	// valueInHub is the value in the manifest. Empty if the field is absent. Values of a Secret are
	// hidden.
	// +optional
	ValueInHub limits.Document `json:"valueInHub,omitempty"`
	// valueInMember is the value in the object. Empty if the field is absent. Values of a Secret are
	// hidden.
	// +optional
	ValueInMember limits.Document `json:"valueInMember,omitempty"`
}

// WorkResourceIdentifier names the object of a manifest.
type WorkResourceIdentifier struct {
	// ordinal is the index of the manifest in the Work.
	// +required
	Ordinal int `json:"ordinal"`
	// group is the API group; empty for the core group.
	// +optional
	Group limits.Name `json:"group,omitempty"`
	// version is the API version.
	// +optional
	Version limits.Name `json:"version,omitempty"`
	// kind is the kind of the object.
	// +optional
	Kind limits.Name `json:"kind,omitempty"`
	// resource is the plural name of the kind in the API. Empty if the member does not serve the kind.
	// +optional
	Resource limits.Name `json:"resource,omitempty"`
	// namespace is the namespace of the object; empty if its kind has none.
	// +optional
	Namespace limits.Name `json:"namespace,omitempty"`
	// name is the name of the object.
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
