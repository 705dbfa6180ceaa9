package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/api/limits"
)

// BundleTarget selects Clusters and overrides options for them. All of the four selectors that are
// set must match.
type BundleTarget struct {
	BundleDeploymentOptions `json:",inline"`

	// Name of the target, for readers.
	// +optional
	// +nullable
	Name limits.Name `json:"name,omitempty"`
	// ClusterName is the name of a Cluster, or its label `management.cattle.io/cluster-display-name`.
	// +optional
	// +nullable
	ClusterName limits.Name `json:"clusterName,omitempty"`
	// ClusterSelector selects by the labels of the Cluster; an empty one matches all.
	// +optional
	// +nullable
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
	// ClusterGroup is the name of a ClusterGroup of the Cluster.
	// +optional
	// +nullable
	ClusterGroup limits.Name `json:"clusterGroup,omitempty"`
	// ClusterGroupSelector selects by the labels of a ClusterGroup of the Cluster.
	// +optional
	// +nullable
	ClusterGroupSelector *metav1.LabelSelector `json:"clusterGroupSelector,omitempty"`
	// Tolerations let the Bundle onto matching Clusters despite their taints, which are in the
	// annotation muster/taints. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	Tolerations []Toleration `json:"tolerations,omitempty"`
	// DoNotDeploy excludes the matching Clusters from the Bundle.
	// +optional
	DoNotDeploy bool `json:"doNotDeploy,omitempty"`
}

// Toleration lets a Bundle onto Clusters despite a taint. A Muster addition.
type Toleration struct {
	// Key of the taint; empty for every key, with the operator Exists.
	// +optional
	Key limits.Name `json:"key,omitempty"`
	// Operator is Equal, the default, for one value, or Exists for all values.
	// +optional
	// +kubebuilder:validation:Enum=Equal;Exists
	Operator limits.Name `json:"operator,omitempty"`
	// Value of the taint, for Equal.
	// +optional
	Value limits.Name `json:"value,omitempty"`
	// Effect of the taint; empty for every effect.
	// +optional
	// +kubebuilder:validation:Enum=NoSchedule
	Effect limits.Name `json:"effect,omitempty"`
}

// BundleTargetRestriction selects Clusters that may be targets.
type BundleTargetRestriction struct {
	// Name of the restriction, for readers.
	// +optional
	// +nullable
	Name limits.Name `json:"name,omitempty"`
	// ClusterName as in a target.
	// +optional
	// +nullable
	ClusterName limits.Name `json:"clusterName,omitempty"`
	// ClusterSelector as in a target.
	// +optional
	// +nullable
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
	// ClusterGroup as in a target.
	// +optional
	// +nullable
	ClusterGroup limits.Name `json:"clusterGroup,omitempty"`
	// ClusterGroupSelector as in a target.
	// +optional
	// +nullable
	ClusterGroupSelector *metav1.LabelSelector `json:"clusterGroupSelector,omitempty"`
}
