package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// AppliedWork is the owner of the objects that a Work applied on the member. If it is deleted,
// Kubernetes deletes these objects. It is cluster-scoped, and has the name of its Work. Only the
// agent writes it.
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
	// workName is the name of the Work.
	// +required
	WorkName string `json:"workName"`
	// workNamespace is the namespace of the Work on the hub.
	// +required
	WorkNamespace string `json:"workNamespace"`
}

// AppliedWorkStatus is the observed state of an AppliedWork.
//
// +kubebuilder:pruning:PreserveUnknownFields
type AppliedWorkStatus struct {
	// appliedResources are the objects that the Work owns.
	// +optional
	AppliedResources []AppliedResource `json:"appliedResources,omitempty"`
}

// AppliedResource is one applied object.
type AppliedResource struct {
	WorkResourceIdentifier `json:",inline"`
	// uid is the UID of the object. It tells the object from a later one with the same name.
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
