package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/muster-fleet/muster/api/limits"
)

// Bundle is resources and the Clusters of its workspace that they are meant for.
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

// BundleSpec is written by users. The inline options apply to every target that does not override them.
type BundleSpec struct {
	BundleDeploymentOptions `json:",inline"`

	// Paused stops rolling changes out; new ones are staged.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// RolloutStrategy says in which waves a change goes out.
	// +optional
	// +nullable
	RolloutStrategy *RolloutStrategy `json:"rolloutStrategy,omitempty"`
	// Resources are the files of the Bundle; together they may have what etcd stores, 1.5 MiB with all the rest of the Bundle.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=16384
	Resources []BundleResource `json:"resources,omitempty"`
	// Targets are the Clusters that the Bundle is meant for; none match where there is none.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=4096
	Targets []BundleTarget `json:"targets,omitempty"`
	// TargetCustomizationMode says whether the first target that matches a Cluster gives its options, or all that match, merged in
	// order. FirstMatch (the default) or AllMatches.
	// +optional
	// +nullable
	TargetCustomizationMode limits.Name `json:"targetCustomizationMode,omitempty"`
	// TargetRestrictions, if there are any, of which one has to match a Cluster too.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=4096
	TargetRestrictions []BundleTargetRestriction `json:"targetRestrictions,omitempty"`
	// DependsOn are Bundles that have to be there on a Cluster first.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	DependsOn []BundleRef `json:"dependsOn,omitempty"`
	// ContentsID names resources that are kept elsewhere.
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
	// ValuesHash says that the values for Helm are in the Secret of the Bundle's name, of type fleet.cattle.io/bundle-values/v1alpha1: under
	// values.yaml those of the Bundle, under the name of a target its own, each as JSON. It is the SHA-256 of the Secret's data, as
	// a JSON object. Until the Secret has these values, what is deployed stays as it is. `fleet apply` sets it.
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
	// Content of the file, encoded as encoding says.
	// +optional
	// +nullable
	Content limits.Document `json:"content,omitempty"`
	// Encoding is empty for plain text, or `base64+gz`.
	// +optional
	// +nullable
	Encoding limits.Name `json:"encoding,omitempty"`
}

// BundleTarget selects Clusters and overrides options for them. Of the four ways to select, all that are set have to match.
type BundleTarget struct {
	BundleDeploymentOptions `json:",inline"`

	// Name of the target, for people.
	// +optional
	// +nullable
	Name limits.Name `json:"name,omitempty"`
	// ClusterName is the name of a Cluster, or its label `management.cattle.io/cluster-display-name`.
	// +optional
	// +nullable
	ClusterName limits.Name `json:"clusterName,omitempty"`
	// ClusterSelector selects by the labels of the Cluster; one that is empty matches all.
	// +optional
	// +nullable
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
	// ClusterGroup is the name of a ClusterGroup that the Cluster is in.
	// +optional
	// +nullable
	ClusterGroup limits.Name `json:"clusterGroup,omitempty"`
	// ClusterGroupSelector selects by the labels of a ClusterGroup that the Cluster is in.
	// +optional
	// +nullable
	ClusterGroupSelector *metav1.LabelSelector `json:"clusterGroupSelector,omitempty"`
	// DoNotDeploy keeps the Bundle off the Clusters that match.
	// +optional
	DoNotDeploy bool `json:"doNotDeploy,omitempty"`
}

// BundleTargetRestriction selects Clusters that may be targets.
type BundleTargetRestriction struct {
	// Name of the restriction, for people.
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

// RolloutStrategy says in which waves a change goes out.
type RolloutStrategy struct {
	// MaxUnavailable is how many deployments of a partition, or what part of them, may be unavailable at once. Default 100%.
	// +optional
	// +nullable
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// MaxUnavailablePartitions is how many partitions may be unavailable before the rollout stops. Default 0.
	// +optional
	// +nullable
	MaxUnavailablePartitions *intstr.IntOrString `json:"maxUnavailablePartitions,omitempty"`
	// AutoPartitionSize is the size of the partitions that are made where none are given. Default 25%.
	// +optional
	// +nullable
	AutoPartitionSize *intstr.IntOrString `json:"autoPartitionSize,omitempty"`
	// AutoPartitionThreshold is the number of Clusters below which all are one partition. Default 200.
	// +optional
	// +nullable
	// +kubebuilder:validation:Minimum=0
	AutoPartitionThreshold *int32 `json:"autoPartitionThreshold,omitempty"`
	// MaxNew is how many deployments are created at once, the next as soon as these are written. Default 50.
	// +optional
	// +nullable
	// +kubebuilder:validation:Minimum=0
	MaxNew *int32 `json:"maxNew,omitempty"`
	// Partitions go out one after the other, in this order.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	Partitions []Partition `json:"partitions,omitempty"`
}

// Partition is a wave of a rollout: the Clusters that match.
type Partition struct {
	// Name of the partition, for people.
	// +optional
	// +nullable
	Name limits.Name `json:"name,omitempty"`
	// MaxUnavailable in this partition. Default that of the strategy.
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
	// AcceptedStates are the bundle states that will do. Default Ready.
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
	// NewlyCreated is how many BundleDeployments the last pass created.
	// +optional
	NewlyCreated int `json:"newlyCreated,omitempty"`
	// Unavailable is how many BundleDeployments are not available.
	// +optional
	Unavailable int `json:"unavailable"`
	// UnavailablePartitions is how many partitions have more unavailable ones than they may.
	// +optional
	UnavailablePartitions int `json:"unavailablePartitions"`
	// MaxUnavailable is how many BundleDeployments may be unavailable.
	// +optional
	MaxUnavailable int `json:"maxUnavailable"`
	// MaxUnavailablePartitions is how many partitions may be unavailable.
	// +optional
	MaxUnavailablePartitions int `json:"maxUnavailablePartitions"`
	// MaxNew is how many BundleDeployments are created at once.
	// +optional
	MaxNew int `json:"maxNew,omitempty"`
	// PartitionStatus (`partitions`) is how each partition stands, in the order of the rollout.
	// +optional
	// +nullable
	PartitionStatus []PartitionStatus `json:"partitions,omitempty"`
	// Display is what the columns of `kubectl get` show.
	// +optional
	Display BundleDisplay `json:"display,omitempty"`
	// ResourceKey is deprecated and not written.
	// +optional
	// +nullable
	ResourceKey []ResourceKey `json:"resourceKey,omitempty"`
	// OCIReference is where the resources are kept, if in a registry.
	// +optional
	// +nullable
	OCIReference string `json:"ociReference,omitempty"`
	// ObservedGeneration is the generation of the spec that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration"`
	// ResourcesSHA256Sum is the hash of the resources.
	// +optional
	// +nullable
	ResourcesSHA256Sum string `json:"resourcesSha256Sum,omitempty"`
}

// PartitionStatus is how a partition stands.
type PartitionStatus struct {
	// Name of the partition.
	// +optional
	// +nullable
	Name string `json:"name,omitempty"`
	// Count of its BundleDeployments.
	// +optional
	Count int `json:"count,omitempty"`
	// MaxUnavailable is how many of them may be unavailable.
	// +optional
	MaxUnavailable int `json:"maxUnavailable,omitempty"`
	// Unavailable is how many of them are.
	// +optional
	Unavailable int `json:"unavailable,omitempty"`
	// Summary counts them by state.
	// +optional
	Summary BundleSummary `json:"summary,omitempty"`
}

// BundleDisplay is made for the columns of `kubectl get bundles`.
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
