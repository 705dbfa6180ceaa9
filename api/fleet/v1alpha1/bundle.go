package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/muster-fleet/muster/api/limits"
)

// Bundle holds resources and selects the Clusters of its workspace that get them.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=bundles
// +kubebuilder:printcolumn:name="BundleDeployments-Ready",type=string,JSONPath=`.status.display.readyClusters`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type Bundle struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec BundleSpec `json:"spec,omitempty"`
	// +optional
	Status BundleStatus `json:"status,omitempty"`
}

// BundleSpec is written by users. The inline options apply to every target that does not override
// them.
type BundleSpec struct {
	BundleDeploymentOptions `json:",inline"`

	// Paused stops the rollout of changes; new ones are staged.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// RolloutStrategy divides the rollout of a change into partitions.
	// +optional
	// +nullable
	RolloutStrategy *RolloutStrategy `json:"rolloutStrategy,omitempty"`
	// Resources are the files of the Bundle. With the rest of the Bundle they may have at most the 1.5
	// MiB that etcd stores.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=16384
	Resources []BundleResource `json:"resources,omitempty"`
	// Targets select the Clusters of the Bundle; without a target the Bundle matches none.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=4096
	Targets []BundleTarget `json:"targets,omitempty"`
	// TargetCustomizationMode selects the targets that set the options of a Cluster. FirstMatch, the
	// default, takes the first matching target. AllMatches merges all matching ones, in order.
	// +optional
	// +nullable
	TargetCustomizationMode limits.Name `json:"targetCustomizationMode,omitempty"`
	// TargetRestrictions further restrict the Clusters: if there are any, at least one must match.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=4096
	TargetRestrictions []BundleTargetRestriction `json:"targetRestrictions,omitempty"`
	// DependsOn lists Bundles that a Cluster must have first.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	DependsOn []BundleRef `json:"dependsOn,omitempty"`
	// ContentsID names resources stored elsewhere.
	// +optional
	// +nullable
	ContentsID limits.Name `json:"contentsId,omitempty"`
	// HelmOpOptions is set by a HelmOp.
	// +optional
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	HelmOpOptions *runtime.RawExtension `json:"helmOpOptions,omitempty"`
	// ValuesHash marks a Bundle with its Helm values in the Secret of the Bundle's name, of type
	// fleet.cattle.io/bundle-values/v1alpha1. The Secret has the Bundle's values under values.yaml,
	// and a target's own values under the name of the target, each as JSON. The hash is the SHA-256 of
	// the Secret's data, as a JSON object. Until the Secret has these values, deployed resources stay
	// unchanged. `fleet apply` sets the field.
	// +optional
	// +nullable
	ValuesHash limits.Name `json:"valuesHash,omitempty"`
}

// BundleResource is a file of a Bundle.
type BundleResource struct {
	// Name is the path of the file.
	// +optional
	// +nullable
	Name limits.Line `json:"name,omitempty"`
	// Content of the file, in the given encoding.
	// +optional
	// +nullable
	Content limits.Document `json:"content,omitempty"`
	// Encoding is empty for plain text, or `base64+gz`.
	// +optional
	// +nullable
	Encoding limits.Name `json:"encoding,omitempty"`
}

// RolloutStrategy divides the rollout of a change into partitions.
type RolloutStrategy struct {
	// MaxUnavailable is the number or percentage of a partition's deployments that may be unavailable
	// at once. Default 100%.
	// +optional
	// +nullable
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// MaxUnavailablePartitions is the number or percentage of partitions that may be unavailable
	// before the rollout stops. Default 0.
	// +optional
	// +nullable
	MaxUnavailablePartitions *intstr.IntOrString `json:"maxUnavailablePartitions,omitempty"`
	// AutoPartitionSize is the size of automatic partitions, used if the strategy lists none. Default
	// 25%.
	// +optional
	// +nullable
	AutoPartitionSize *intstr.IntOrString `json:"autoPartitionSize,omitempty"`
	// AutoPartitionThreshold is the number of Clusters below which all are one partition. Default 200.
	// +optional
	// +nullable
	// +kubebuilder:validation:Minimum=0
	AutoPartitionThreshold *int32 `json:"autoPartitionThreshold,omitempty"`
	// MaxNew is the number of deployments created at once; the next follow as soon as these are
	// written. Default 50.
	// +optional
	// +nullable
	// +kubebuilder:validation:Minimum=0
	MaxNew *int32 `json:"maxNew,omitempty"`
	// Partitions are rolled out one after the other, in this order.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	Partitions []Partition `json:"partitions,omitempty"`
}

// Partition is a part of a rollout: the matching Clusters.
type Partition struct {
	// Name of the partition, for readers.
	// +optional
	// +nullable
	Name limits.Name `json:"name,omitempty"`
	// MaxUnavailable in this partition. The default is the strategy's.
	// +optional
	// +nullable
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
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

// BundleRef names Bundles of the same workspace.
type BundleRef struct {
	// Name of a Bundle.
	// +optional
	// +nullable
	Name limits.Name `json:"name,omitempty"`
	// Selector of Bundles by label.
	// +optional
	// +nullable
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// AcceptedStates lists the sufficient bundle states. Default Ready.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=16
	AcceptedStates []BundleState `json:"acceptedStates,omitempty"`
}

// BundleStatus is written by the hub.
type BundleStatus struct {
	// Conditions: Ready, Processed, Supported.
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
	// Summary counts the BundleDeployments by state.
	// +optional
	Summary BundleSummary `json:"summary,omitempty"`
	// NewlyCreated is the number of BundleDeployments created by the last pass.
	// +optional
	NewlyCreated int `json:"newlyCreated,omitempty"`
	// Unavailable is the number of unavailable BundleDeployments.
	// +optional
	Unavailable int `json:"unavailable"`
	// UnavailablePartitions is the number of partitions with too many unavailable BundleDeployments.
	// +optional
	UnavailablePartitions int `json:"unavailablePartitions"`
	// MaxUnavailable is the number of BundleDeployments that may be unavailable.
	// +optional
	MaxUnavailable int `json:"maxUnavailable"`
	// MaxUnavailablePartitions is the number of partitions that may be unavailable.
	// +optional
	MaxUnavailablePartitions int `json:"maxUnavailablePartitions"`
	// MaxNew is the number of BundleDeployments created at once.
	// +optional
	MaxNew int `json:"maxNew,omitempty"`
	// PartitionStatus (`partitions`) is the status of each partition, in the order of the rollout.
	// +optional
	// +nullable
	PartitionStatus []PartitionStatus `json:"partitions,omitempty"`
	// Display holds the columns of `kubectl get`.
	// +optional
	Display BundleDisplay `json:"display,omitempty"`
	// ResourceKey is deprecated and not written.
	// +optional
	// +nullable
	ResourceKey []ResourceKey `json:"resourceKey,omitempty"`
	// OCIReference is the location of the resources in a registry, if they are in one.
	// +optional
	// +nullable
	OCIReference string `json:"ociReference,omitempty"`
	// ObservedGeneration is the generation of the spec behind this status.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration"`
	// ResourcesSHA256Sum is the hash of the resources.
	// +optional
	// +nullable
	ResourcesSHA256Sum string `json:"resourcesSha256Sum,omitempty"`
}

// PartitionStatus is the status of a partition.
type PartitionStatus struct {
	// Name of the partition.
	// +optional
	// +nullable
	Name string `json:"name,omitempty"`
	// Count of its BundleDeployments.
	// +optional
	Count int `json:"count,omitempty"`
	// MaxUnavailable is the number of them that may be unavailable.
	// +optional
	MaxUnavailable int `json:"maxUnavailable,omitempty"`
	// Unavailable is the number of unavailable ones.
	// +optional
	Unavailable int `json:"unavailable,omitempty"`
	// Summary counts them by state.
	// +optional
	Summary BundleSummary `json:"summary,omitempty"`
}

// BundleDisplay holds the columns of `kubectl get bundles`.
type BundleDisplay struct {
	// ReadyClusters is `ready/desired`.
	// +optional
	// +nullable
	ReadyClusters string `json:"readyClusters,omitempty"`
	// State is the worst bundle state.
	// +optional
	// +nullable
	State string `json:"state,omitempty"`
}

// ResourceKey names a resource.
type ResourceKey struct {
	// Kind of the resource.
	// +optional
	// +nullable
	Kind string `json:"kind,omitempty"`
	// APIVersion of the resource.
	// +optional
	// +nullable
	APIVersion string `json:"apiVersion,omitempty"`
	// Namespace of the resource.
	// +optional
	// +nullable
	Namespace string `json:"namespace,omitempty"`
	// Name of the resource.
	// +optional
	// +nullable
	Name string `json:"name,omitempty"`
}

// BundleList is a list of Bundles.
//
// +kubebuilder:object:root=true
type BundleList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Bundle `json:"items"`
}
