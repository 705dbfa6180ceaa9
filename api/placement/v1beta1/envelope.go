package v1beta1

// These kinds are served in this version only, as KubeFleet does.

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ResourceEnvelope wraps manifests for its own namespace. They have no effect on the hub cluster. A
// placement that selects the envelope places the manifests instead of the envelope.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=resourceenvelopes,categories={fleet,fleet-placement}
type ResourceEnvelope struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// data holds the manifests by name. The names are free; a file name is a good choice. The
	// metadata.namespace of each manifest must be the namespace of the envelope.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=50
	Data map[string]Manifest `json:"data"`
}

// ResourceEnvelopeList is a list of ResourceEnvelopes.
//
// +kubebuilder:object:root=true
type ResourceEnvelopeList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceEnvelope `json:"items"`
}

// ClusterResourceEnvelope wraps manifests of cluster-scoped objects. They have no effect on the hub
// cluster. A ClusterResourcePlacement that selects the envelope places the manifests instead of the
// envelope.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=clusterresourceenvelopes,scope=Cluster,categories={fleet,fleet-placement}
type ClusterResourceEnvelope struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// data holds the manifests by name. The names are free; a file name is a good choice. No manifest
	// has a metadata.namespace.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=50
	Data map[string]Manifest `json:"data"`
}

// ClusterResourceEnvelopeList is a list of ClusterResourceEnvelopes.
//
// +kubebuilder:object:root=true
type ClusterResourceEnvelopeList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterResourceEnvelope `json:"items"`
}
