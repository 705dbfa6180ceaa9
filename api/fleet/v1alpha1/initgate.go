package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// InitGate is a step of the set-up of a new cluster. It has either a Bundle or a condition.
//
// +kubebuilder:validation:XValidation:rule="has(self.bundle) != has(self.condition)",message="a gate waits for a bundle or for a condition: set one of them"
type InitGate struct {
	// Bundle is the name of a Bundle in the Cluster's workspace. The gate opens when it is ready on
	// the cluster.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Bundle string `json:"bundle,omitempty"`
	// Condition is the type of a condition in the Cluster's status. The gate opens when it is True.
	// Initialized and Ready cannot be named, because they wait for the gates themselves.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:XValidation:rule="!(self in ['Initialized', 'Ready'])",message="Initialized and Ready wait for the gates themselves: name another condition"
	Condition string `json:"condition,omitempty"`
}

// ClusterInitialization is the state of the gates of a new Cluster.
type ClusterInitialization struct {
	// Opened is the number of gates that are open, from the first.
	// +optional
	Opened int `json:"opened"`
	// Finished is the time when the last gate opened; null before. After it the gates hold nothing
	// back, even if their Bundles or conditions fail.
	// +optional
	// +nullable
	Finished *metav1.Time `json:"finished,omitempty"`
}
