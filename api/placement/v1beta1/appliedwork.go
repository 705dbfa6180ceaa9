package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// AppliedWork is cluster-scoped, lives on the member, and has the name of its Work. It owns the
// applied objects: they are deleted with it. Only the agent writes it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=appliedworks,scope=Cluster,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type AppliedWork struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec AppliedWorkSpec `json:"spec"`
	// +optional
	Status AppliedWorkStatus `json:"status,omitempty"`
}

// AppliedWorkSpec names the Work of an AppliedWork.
type AppliedWorkSpec struct {
	// WorkName is the name of the Work.
	// +required
	WorkName string `json:"workName"`
	// WorkNamespace is the Work's member namespace on the hub.
	// +required
	WorkNamespace string `json:"workNamespace"`
}

// AppliedWorkStatus lists the applied objects.
//
// +kubebuilder:pruning:PreserveUnknownFields
type AppliedWorkStatus struct {
	// AppliedResources are the applied objects that the Work still owns.
	// +optional
	AppliedResources []AppliedResource `json:"appliedResources,omitempty"`
}

// AppliedResource is one applied object.
type AppliedResource struct {
	WorkResourceIdentifier `json:",inline"`
	// UID of the object. It distinguishes the object from another of the same name.
	// +optional
	UID types.UID `json:"uid,omitempty"`
}

// AppliedWorkList is a list of AppliedWorks.
//
// +kubebuilder:object:root=true
type AppliedWorkList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AppliedWork `json:"items"`
}
