package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kinds of Rancher Fleet without effect in Muster. Muster stores them, so that the command line of
// Rancher Fleet works and users can apply their manifests. The schemas do not list their fields.
// The condition Supported names the replacement.

// UnsupportedStatus is the status of a kind without effect in Muster.
type UnsupportedStatus struct {
	// conditions: Supported. It is False and names the replacement. The hub writes only this
	// condition.
	// +optional
	// +nullable
	Conditions []Condition `json:"conditions,omitempty"`
}

// ImageScan searches for new tags of an image in Rancher Fleet. In Muster it has no effect.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=imagescans
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:printcolumn:name="Repository",type=string,JSONPath=`.spec.image`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Supported")].message`
type ImageScan struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// status keeps every field that upstream writes.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Status UnsupportedStatus `json:"status,omitempty"`
}

// ImageScanList is a list of ImageScans.
//
// +kubebuilder:object:root=true
type ImageScanList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ImageScan `json:"items"`
}
