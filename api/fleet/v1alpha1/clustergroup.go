package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterGroup selects Clusters of its workspace by label.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=clustergroups,categories=fleet
// +kubebuilder:printcolumn:name="Clusters-Ready",type=string,JSONPath=`.status.display.readyClusters`
// +kubebuilder:printcolumn:name="Bundles-Ready",type=string,JSONPath=`.status.display.readyBundles`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type ClusterGroup struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec ClusterGroupSpec `json:"spec,omitempty"`
	// +optional
	Status ClusterGroupStatus `json:"status,omitempty"`
}

// ClusterGroupSpec is written by users.
type ClusterGroupSpec struct {
	// Selector of Clusters in the same namespace; null matches nothing.
	// +optional
	// +nullable
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// ClusterGroupStatus is written by the hub.
type ClusterGroupStatus struct {
	// ClusterCount is the number of selected Clusters.
	// +optional
	ClusterCount int `json:"clusterCount"`
	// NonReadyClusterCount is the number of unready ones among them.
	// +optional
	NonReadyClusterCount int `json:"nonReadyClusterCount"`
	// NonReadyClusters names at most ten of the unready ones.
	// +optional
	// +nullable
	NonReadyClusters []string `json:"nonReadyClusters,omitempty"`
	// Conditions: Ready, Processed.
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
	// Summary rolls up the BundleDeployments of the selected Clusters.
	// +optional
	Summary BundleSummary `json:"summary,omitempty"`
	// Display holds the columns of `kubectl get`.
	// +optional
	Display ClusterGroupDisplay `json:"display,omitempty"`
	// ResourceCounts rolls up the deployed resources.
	// +optional
	ResourceCounts ResourceCounts `json:"resourceCounts,omitempty"`
	// ReadyGitRepos is the number of GitRepos that are ready on all selected Clusters that they
	// target. A Muster addition.
	// +optional
	ReadyGitRepos int `json:"readyGitRepos,omitempty"`
	// DesiredReadyGitRepos is the number of GitRepos that target a selected Cluster. A Muster
	// addition.
	// +optional
	DesiredReadyGitRepos int `json:"desiredReadyGitRepos,omitempty"`
}

// ClusterGroupDisplay holds the columns of `kubectl get clustergroups`.
type ClusterGroupDisplay struct {
	// ReadyClusters is `ready/total`, followed by the names of some unready ones.
	// +optional
	ReadyClusters string `json:"readyClusters,omitempty"`
	// ReadyBundles is `ready/desired`.
	// +optional
	ReadyBundles string `json:"readyBundles,omitempty"`
	// State is the worst bundle state.
	// +optional
	State string `json:"state,omitempty"`
}

// ClusterGroupList is a list of ClusterGroups.
//
// +kubebuilder:object:root=true
type ClusterGroupList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterGroup `json:"items"`
}
