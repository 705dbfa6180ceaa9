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

// ClusterGroupSpec is the desired state of a ClusterGroup. Users write it.
type ClusterGroupSpec struct {
	// selector selects Clusters of the same namespace by label. Null selects none.
	// +optional
	// +nullable
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// ClusterGroupStatus is the observed state of a ClusterGroup. The hub writes it.
type ClusterGroupStatus struct {
	// clusterCount is the number of selected Clusters.
	// +optional
	ClusterCount int `json:"clusterCount"`
	// nonReadyClusterCount is the number of selected Clusters that are not ready.
	// +optional
	NonReadyClusterCount int `json:"nonReadyClusterCount"`
	// nonReadyClusters names at most ten of the Clusters that are not ready.
	// +optional
	// +nullable
	NonReadyClusters []string `json:"nonReadyClusters,omitempty"`
	// conditions: Ready, Processed.
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
	// summary rolls up the BundleDeployments of the selected Clusters.
	// +optional
	Summary BundleSummary `json:"summary,omitempty"`
	// display holds the columns of `kubectl get`.
	// +optional
	Display ClusterGroupDisplay `json:"display,omitempty"`
	// resourceCounts rolls up the deployed resources.
	// +optional
	ResourceCounts ResourceCounts `json:"resourceCounts,omitempty"`
	// readyGitRepos is the number of GitRepos that are ready on all their selected Clusters. A Muster
	// addition.
	// +optional
	ReadyGitRepos int `json:"readyGitRepos,omitempty"`
	// desiredReadyGitRepos is the number of GitRepos that target a selected Cluster. A Muster
	// addition.
	// +optional
	DesiredReadyGitRepos int `json:"desiredReadyGitRepos,omitempty"`
}

// ClusterGroupDisplay holds the columns of `kubectl get clustergroups`.
type ClusterGroupDisplay struct {
	// readyClusters is `ready/total`, followed by the names of some Clusters that are not ready.
	// +optional
	ReadyClusters string `json:"readyClusters,omitempty"`
	// readyBundles is `ready/desired`.
	// +optional
	ReadyBundles string `json:"readyBundles,omitempty"`
	// state is the worst bundle state.
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
