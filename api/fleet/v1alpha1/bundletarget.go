package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/api/limits"
)

// BundleTarget selects Clusters and overrides options for them. A Cluster must match each of the
// four selectors that is set.
type BundleTarget struct {
	BundleDeploymentOptions `json:",inline"`

	// name is the name of the target, for readers.
	// +optional
	// +nullable
	Name limits.Name `json:"name,omitempty"`
	// clusterName is the name of a Cluster, or the value of its label
	// `management.cattle.io/cluster-display-name`.
	// +optional
	// +nullable
	ClusterName limits.Name `json:"clusterName,omitempty"`
	// clusterSelector selects by the labels of the Cluster; an empty one matches all.
	// +optional
	// +nullable
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
	// clusterGroup is the name of a ClusterGroup. It selects the Clusters of the group.
	// +optional
	// +nullable
	ClusterGroup limits.Name `json:"clusterGroup,omitempty"`
	// clusterGroupSelector selects ClusterGroups by label, and with them their Clusters.
	// +optional
	// +nullable
	ClusterGroupSelector *metav1.LabelSelector `json:"clusterGroupSelector,omitempty"`
	// tolerations permit the Bundle on matching Clusters despite their taints. The annotation
	// muster/taints of a Cluster has its taints. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	Tolerations []Toleration `json:"tolerations,omitempty"`
	// doNotDeploy excludes the matching Clusters from the Bundle.
	// +optional
	DoNotDeploy bool `json:"doNotDeploy,omitempty"`
}

// Toleration permits a Bundle on Clusters despite a taint. A Muster addition.
type Toleration struct {
	// key is the key of the taint. An empty key with the operator Exists matches every key.
	// +optional
	Key limits.Name `json:"key,omitempty"`
	// operator is Equal (one value) or Exists (every value). Default Equal.
	// +optional
	// +kubebuilder:validation:Enum=Equal;Exists
	Operator limits.Name `json:"operator,omitempty"`
	// value is the value of the taint, for Equal.
	// +optional
	Value limits.Name `json:"value,omitempty"`
	// effect is the effect of the taint; empty for every effect.
	// +optional
	// +kubebuilder:validation:Enum=NoSchedule
	Effect limits.Name `json:"effect,omitempty"`
}

// BundleTargetRestriction selects Clusters that may be targets.
type BundleTargetRestriction struct {
	// name is the name of the restriction, for readers.
	// +optional
	// +nullable
	Name limits.Name `json:"name,omitempty"`
	// clusterName has the same meaning as in a target.
	// +optional
	// +nullable
	ClusterName limits.Name `json:"clusterName,omitempty"`
	// clusterSelector has the same meaning as in a target.
	// +optional
	// +nullable
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
	// clusterGroup has the same meaning as in a target.
	// +optional
	// +nullable
	ClusterGroup limits.Name `json:"clusterGroup,omitempty"`
	// clusterGroupSelector has the same meaning as in a target.
	// +optional
	// +nullable
	ClusterGroupSelector *metav1.LabelSelector `json:"clusterGroupSelector,omitempty"`
}
