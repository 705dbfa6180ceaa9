package v1beta1

// These kinds are served in this version only, as KubeFleet does.

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ResourceEnvelope wraps manifests of its own namespace. The hub cluster does not act on wrapped
// manifests. A placement that selects an envelope places the manifests, not the envelope.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=resourceenvelopes,categories={fleet,fleet-placement}
type ResourceEnvelope struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Data are the manifests, each under any name, such as its file name. Their metadata.namespace
	// equals the namespace of the envelope.
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

// ClusterResourceEnvelope wraps manifests of cluster-scoped objects. The hub cluster does not act
// on wrapped manifests. A ClusterResourcePlacement that selects an envelope places the manifests,
// not the envelope.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=clusterresourceenvelopes,scope=Cluster,categories={fleet,fleet-placement}
type ClusterResourceEnvelope struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Data are the manifests, each under any name, such as its file name. They have no
	// metadata.namespace.
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
