package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kinds of Rancher Fleet's that Muster stores without acting on them, so that its command line
// works and users can apply manifests. The schemas do not have their fields. The condition
// Supported names the replacement.

// UnsupportedStatus is the status of a kind without effect in Muster.
type UnsupportedStatus struct {
	// Conditions: Supported, which is False and names the replacement. The hub writes only this
	// condition.
	// +optional
	// +nullable
	Conditions []Condition `json:"conditions,omitempty"`
}

// ImageScan searches, in Rancher Fleet, for new tags of an image. Muster does nothing with it.
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

	// Status keeps every field that upstream writes.
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
