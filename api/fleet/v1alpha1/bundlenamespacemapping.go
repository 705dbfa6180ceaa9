package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// BundleNamespaceMapping lets Bundles of its namespace target Clusters of other namespaces. The
// other namespaces must consent with the annotation muster/bundles-from.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=bundlenamespacemappings
type BundleNamespaceMapping struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// bundleSelector selects Bundles of the mapping's namespace by label; null selects none.
	// +optional
	// +nullable
	BundleSelector *metav1.LabelSelector `json:"bundleSelector,omitempty"`
	// namespaceSelector selects namespaces by label; null selects none.
	// +optional
	// +nullable
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// status is the observed state of the mapping. The hub writes it.
	// +optional
	Status BundleNamespaceMappingStatus `json:"status,omitempty"`
}

// BundleNamespaceMappingStatus is the status of a mapping. A Muster addition.
type BundleNamespaceMappingStatus struct {
	// conditions: Ready. It is False while a selector is invalid or a selected namespace does not
	// consent. Its message has the command to consent.
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
