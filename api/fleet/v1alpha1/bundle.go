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

// BundleSpec is the desired state of a Bundle. Users write it. The inline options apply to all
// targets. A target can override them.
type BundleSpec struct {
	BundleDeploymentOptions `json:",inline"`

	// paused stops the rollout of changes. The hub stages new changes until it is false.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// rolloutStrategy divides the rollout of a change into partitions.
	// +optional
	// +nullable
	RolloutStrategy *RolloutStrategy `json:"rolloutStrategy,omitempty"`
	// resources are the files of the Bundle. etcd limits the whole Bundle to 1.5 MiB.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=16384
	Resources []BundleResource `json:"resources,omitempty"`
	// targets select the Clusters of the Bundle. Without a target, the Bundle matches no Cluster.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=4096
	Targets []BundleTarget `json:"targets,omitempty"`
	// targetCustomizationMode decides which of several matching targets set the options of a Cluster.
	// FirstMatch, the default, uses the first one. AllMatches merges all of them, in order.
	// +optional
	// +nullable
	TargetCustomizationMode limits.Name `json:"targetCustomizationMode,omitempty"`
	// targetRestrictions limit the Clusters further. If there are any, a Cluster must match at least
	// one of them.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=4096
	TargetRestrictions []BundleTargetRestriction `json:"targetRestrictions,omitempty"`
	// dependsOn lists the Bundles that must be in an accepted state on a Cluster before this one is
	// deployed there.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	DependsOn []BundleRef `json:"dependsOn,omitempty"`
	// contentsId names the resources of a Bundle in a registry, instead of resources.
	// +optional
	// +nullable
	ContentsID limits.Name `json:"contentsId,omitempty"`
	// helmOpOptions is set by a HelmOp.
	// +optional
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	HelmOpOptions *runtime.RawExtension `json:"helmOpOptions,omitempty"`
	// valuesHash is set if the Helm values are in a Secret instead of the spec. The Secret has the
	// name of the Bundle and the type fleet.cattle.io/bundle-values/v1alpha1. Its key values.yaml has
	// the values of the Bundle; the name of a target is the key of its own values. Each is JSON. The
	// hash is the SHA-256 of the Secret's data, as a JSON object. Until the data has this hash,
	// deployed resources stay unchanged. `fleet apply` sets the field.
	// +optional
	// +nullable
	ValuesHash limits.Name `json:"valuesHash,omitempty"`
}

// BundleResource is a file of a Bundle.
type BundleResource struct {
	// name is the path of the file.
	// +optional
	// +nullable
	Name limits.Line `json:"name,omitempty"`
	// content is the content of the file, encoded as in encoding.
	// +optional
	// +nullable
	Content limits.Document `json:"content,omitempty"`
	// encoding is empty for plain text, or `base64+gz`.
	// +optional
	// +nullable
	Encoding limits.Name `json:"encoding,omitempty"`
}

// RolloutStrategy divides the rollout of a change into partitions.
type RolloutStrategy struct {
	// maxUnavailable is the number or percentage of a partition's deployments that may be unavailable
	// at once. Default 100%.
	// +optional
	// +nullable
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// maxUnavailablePartitions is the number or percentage of partitions that may be unavailable. With
	// more, the rollout stops. Default 0.
	// +optional
	// +nullable
	MaxUnavailablePartitions *intstr.IntOrString `json:"maxUnavailablePartitions,omitempty"`
	// autoPartitionSize is the size of the automatic partitions of a strategy without partitions.
	// Default 25%.
	// +optional
	// +nullable
	AutoPartitionSize *intstr.IntOrString `json:"autoPartitionSize,omitempty"`
	// autoPartitionThreshold is the smallest number of Clusters for automatic partitions. Fewer
	// Clusters form one partition. Default 200.
	// +optional
	// +nullable
	// +kubebuilder:validation:Minimum=0
	AutoPartitionThreshold *int32 `json:"autoPartitionThreshold,omitempty"`
	// maxNew is the number of BundleDeployments that the hub creates in one pass. The next pass
	// follows at once. Default 50.
	// +optional
	// +nullable
	// +kubebuilder:validation:Minimum=0
	MaxNew *int32 `json:"maxNew,omitempty"`
	// partitions are rolled out one after the other, in this order.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	Partitions []Partition `json:"partitions,omitempty"`
}

// Partition is a part of a rollout: the matching Clusters.
type Partition struct {
	// name is the name of the partition, for readers.
	// +optional
	// +nullable
	Name limits.Name `json:"name,omitempty"`
	// maxUnavailable overrides the strategy's maxUnavailable in this partition.
	// +optional
	// +nullable
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
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

// BundleRef names Bundles of the same workspace.
type BundleRef struct {
	// name is the name of the Bundle.
	// +optional
	// +nullable
	Name limits.Name `json:"name,omitempty"`
	// selector selects Bundles by label.
	// +optional
	// +nullable
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// acceptedStates lists the bundle states that satisfy the dependency. Default Ready.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=16
	AcceptedStates []BundleState `json:"acceptedStates,omitempty"`
}

// BundleStatus is the observed state of a Bundle. The hub writes it.
type BundleStatus struct {
	// conditions: Ready, Processed, Supported.
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
	// summary counts the BundleDeployments by state.
	// +optional
	Summary BundleSummary `json:"summary,omitempty"`
	// newlyCreated is the number of BundleDeployments created by the last pass.
	// +optional
	NewlyCreated int `json:"newlyCreated,omitempty"`
	// unavailable is the number of unavailable BundleDeployments.
	// +optional
	Unavailable int `json:"unavailable"`
	// unavailablePartitions is the number of partitions with too many unavailable BundleDeployments.
	// +optional
	UnavailablePartitions int `json:"unavailablePartitions"`
	// maxUnavailable is the number of BundleDeployments that may be unavailable.
	// +optional
	MaxUnavailable int `json:"maxUnavailable"`
	// maxUnavailablePartitions is the number of partitions that may be unavailable.
	// +optional
	MaxUnavailablePartitions int `json:"maxUnavailablePartitions"`
	// maxNew is the number of BundleDeployments created at once.
	// +optional
	MaxNew int `json:"maxNew,omitempty"`
	// partitions is the status of each partition, in the order of the rollout.
	// +optional
	// +nullable
	PartitionStatus []PartitionStatus `json:"partitions,omitempty"`
	// display holds the columns of `kubectl get`.
	// +optional
	Display BundleDisplay `json:"display,omitempty"`
	// resourceKey is deprecated and not written.
	// +optional
	// +nullable
	ResourceKey []ResourceKey `json:"resourceKey,omitempty"`
	// ociReference is the location of resources that are in a registry; otherwise empty.
	// +optional
	// +nullable
	OCIReference string `json:"ociReference,omitempty"`
	// observedGeneration is the metadata.generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration"`
	// resourcesSha256Sum is the hash of the resources.
	// +optional
	// +nullable
	ResourcesSHA256Sum string `json:"resourcesSha256Sum,omitempty"`
}

// PartitionStatus is the status of a partition.
type PartitionStatus struct {
	// name is the name of the partition.
	// +optional
	// +nullable
	Name string `json:"name,omitempty"`
	// count is the number of its BundleDeployments.
	// +optional
	Count int `json:"count,omitempty"`
	// maxUnavailable is the number of its BundleDeployments that may be unavailable.
	// +optional
	MaxUnavailable int `json:"maxUnavailable,omitempty"`
	// unavailable is the number of its unavailable BundleDeployments.
	// +optional
	Unavailable int `json:"unavailable,omitempty"`
	// summary counts its BundleDeployments by state.
	// +optional
	Summary BundleSummary `json:"summary,omitempty"`
}

// BundleDisplay holds the columns of `kubectl get bundles`.
type BundleDisplay struct {
	// readyClusters is `ready/desired`.
	// +optional
	// +nullable
	ReadyClusters string `json:"readyClusters,omitempty"`
	// state is the worst state of the Bundle on any Cluster.
	// +optional
	// +nullable
	State string `json:"state,omitempty"`
}

// ResourceKey names a resource.
type ResourceKey struct {
	// kind is the kind of the resource.
	// +optional
	// +nullable
	Kind string `json:"kind,omitempty"`
	// apiVersion is the API version of the resource.
	// +optional
	// +nullable
	APIVersion string `json:"apiVersion,omitempty"`
	// namespace is the namespace of the resource.
	// +optional
	// +nullable
	Namespace string `json:"namespace,omitempty"`
	// name is the name of the resource.
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
