package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// AppliedWork is on the member, cluster-scoped, with the name of the Work that it stands for. It
// owns what was applied of it, so that all of that goes when it goes. It is the agent's alone.
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

// AppliedWorkSpec says which Work an AppliedWork stands for.
type AppliedWorkSpec struct {
	// WorkName is the name of the Work.
	// +required
	WorkName string `json:"workName"`
	// WorkNamespace is the member namespace on the hub that the Work is in.
	// +required
	WorkNamespace string `json:"workNamespace"`
}

// AppliedWorkStatus says what was applied.
//
// +kubebuilder:pruning:PreserveUnknownFields
type AppliedWorkStatus struct {
	// AppliedResources are the objects that were applied and are still the Work's.
	// +optional
	AppliedResources []AppliedResource `json:"appliedResources,omitempty"`
}

// AppliedResource is one object that was applied.
type AppliedResource struct {
	WorkResourceIdentifier `json:",inline"`
	// UID of the object, which tells it from another of the same name.
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
