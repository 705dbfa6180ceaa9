package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Content holds the resources of a Bundle under their hash.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=contents,scope=Cluster
type Content struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// content is the gzip of the JSON of the resources.
	// +optional
	// +nullable
	Content []byte `json:"content,omitempty"`
	// sha256sum is the hexadecimal digest of the uncompressed bytes.
	// +optional
	SHA256Sum string `json:"sha256sum,omitempty"`
	// +optional
	Status ContentStatus `json:"status,omitempty"`
}

// ContentStatus is the observed state of a Content. The hub writes it.
type ContentStatus struct {
	// referenceCount is the number of BundleDeployments that use the Content. Only the hub of Rancher
	// Fleet writes it. Muster uses an index instead, which saves a write for every Cluster that gets
	// or loses a Bundle.
	// +optional
	ReferenceCount int `json:"referenceCount,omitempty"`
}

// ContentList is a list of Contents.
//
// +kubebuilder:object:root=true
type ContentList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Content `json:"items"`
}
