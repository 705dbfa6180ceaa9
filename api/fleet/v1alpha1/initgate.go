package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// InitGate is a step in the setup of a new cluster. It waits for a Bundle or for a condition.
//
// +kubebuilder:validation:XValidation:rule="has(self.bundle) != has(self.condition)",message="a gate waits for a bundle or for a condition: set one of them"
type InitGate struct {
	// bundle is the name of a Bundle in the Cluster's workspace. The gate opens when the Bundle is
	// ready on the cluster.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Bundle string `json:"bundle,omitempty"`
	// condition is the type of a condition in the Cluster's status. The gate opens when the condition
	// is True. Initialized and Ready are not permitted, because they wait for the gates.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:XValidation:rule="!(self in ['Initialized', 'Ready'])",message="Initialized and Ready wait for the gates themselves: name another condition"
	Condition string `json:"condition,omitempty"`
}

// ClusterInitialization is the state of the gates of a new Cluster.
type ClusterInitialization struct {
	// opened is the number of open gates.
	// +optional
	Opened int `json:"opened"`
	// finished is the time when the last gate opened. Null before that. Afterwards the gates hold
	// nothing back, even if their Bundles or conditions fail.
	// +optional
	// +nullable
	Finished *metav1.Time `json:"finished,omitempty"`
}
