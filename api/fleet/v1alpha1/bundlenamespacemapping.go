package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// BundleNamespaceMapping lets Bundles of its namespace target Clusters of other namespaces. These
// must consent with the annotation muster/bundles-from.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=bundlenamespacemappings
type BundleNamespaceMapping struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// BundleSelector selects Bundles of the mapping's namespace by label; null selects none.
	// +optional
	// +nullable
	BundleSelector *metav1.LabelSelector `json:"bundleSelector,omitempty"`
	// NamespaceSelector selects namespaces by label; null selects none.
	// +optional
	// +nullable
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// Status is set by the hub.
	// +optional
	Status BundleNamespaceMappingStatus `json:"status,omitempty"`
}

// BundleNamespaceMappingStatus is the status of a mapping. A Muster addition.
type BundleNamespaceMappingStatus struct {
	// Conditions: Ready, which is False while a selector is invalid or a selected namespace does not
	// consent. Its message has the command to consent. Set by the hub.
	// +optional
	// +nullable
	Conditions []Condition `json:"conditions,omitempty"`
}

// BundleNamespaceMappingList is a list of BundleNamespaceMappings.
//
// +kubebuilder:object:root=true
type BundleNamespaceMappingList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BundleNamespaceMapping `json:"items"`
}
