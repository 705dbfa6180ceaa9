package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/api/limits"
)

// ClusterResourcePlacement places resources of the hub on members: cluster-scoped resources, and
// Namespaces with the resources in them.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=clusterresourceplacements,scope=Cluster,shortName=crp,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Gen",type=integer,JSONPath=`.metadata.generation`
// +kubebuilder:printcolumn:name="Scheduled",type=string,JSONPath=`.status.conditions[?(@.type=="ClusterResourcePlacementScheduled")].status`
// +kubebuilder:printcolumn:name="Scheduled-Gen",type=integer,priority=1,JSONPath=`.status.conditions[?(@.type=="ClusterResourcePlacementScheduled")].observedGeneration`
// +kubebuilder:printcolumn:name="Applied",type=string,JSONPath=`.status.conditions[?(@.type=="ClusterResourcePlacementApplied")].status`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="ClusterResourcePlacementAvailable")].status`
// +kubebuilder:printcolumn:name="Available-Gen",type=integer,priority=1,JSONPath=`.status.conditions[?(@.type=="ClusterResourcePlacementAvailable")].observedGeneration`
// +kubebuilder:printcolumn:name="Members",type=string,JSONPath=`.status.members`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) < 64",message="metadata.name max length is 63"
type ClusterResourcePlacement struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec PlacementSpec `json:"spec"`
	// +optional
	Status PlacementStatus `json:"status,omitempty"`
}

// ClusterResourcePlacementList is a list of ClusterResourcePlacements.
//
// +kubebuilder:object:root=true
type ClusterResourcePlacementList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterResourcePlacement `json:"items"`
}

// ResourcePlacement places resources of its own namespace on members, in the namespace of the same
// name. This namespace must exist on the members.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=resourceplacements,shortName=rp,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Gen",type=integer,JSONPath=`.metadata.generation`
// +kubebuilder:printcolumn:name="Scheduled",type=string,JSONPath=`.status.conditions[?(@.type=="ResourcePlacementScheduled")].status`
// +kubebuilder:printcolumn:name="Scheduled-Gen",type=integer,priority=1,JSONPath=`.status.conditions[?(@.type=="ResourcePlacementScheduled")].observedGeneration`
// +kubebuilder:printcolumn:name="Applied",type=string,JSONPath=`.status.conditions[?(@.type=="ResourcePlacementApplied")].status`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="ResourcePlacementAvailable")].status`
// +kubebuilder:printcolumn:name="Available-Gen",type=integer,priority=1,JSONPath=`.status.conditions[?(@.type=="ResourcePlacementAvailable")].observedGeneration`
// +kubebuilder:printcolumn:name="Members",type=string,JSONPath=`.status.members`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) < 64",message="metadata.name max length is 63"
type ResourcePlacement struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec PlacementSpec `json:"spec"`
	// +optional
	Status PlacementStatus `json:"status,omitempty"`
}

// ResourcePlacementList is a list of ResourcePlacements.
//
// +kubebuilder:object:root=true
type ResourcePlacementList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourcePlacement `json:"items"`
}

// PlacementSpec is written by users.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.policy) || has(self.policy)",message="policy cannot be removed once it is set"
type PlacementSpec struct {
	// ResourceSelectors select the resources. Each selector adds its resources.
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	ResourceSelectors []ResourceSelector `json:"resourceSelectors"`
	// Policy picks the members. Default: all.
	// +optional
	Policy *PlacementPolicy `json:"policy,omitempty"`
	// Strategy defines the rollout of changes to the members.
	// +optional
	Strategy RolloutStrategy `json:"strategy,omitempty"`
	// RevisionHistoryLimit is the number of kept versions of the selected resources for staged update
	// runs. Only the strategy type External keeps versions.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
	// StatusReportingScope is the place of the status. ClusterScopeOnly shows it on the placement.
	// NamespaceAccessible adds a ClusterResourcePlacementStatus in the one Namespace selected by a
	// ClusterResourcePlacement. Default: ClusterScopeOnly.
	// +optional
	// +kubebuilder:default=ClusterScopeOnly
	StatusReportingScope StatusReportingScope `json:"statusReportingScope,omitempty"`
}

// SelectionScope is the extent of the selection of a Namespace.
//
// +kubebuilder:validation:Enum=NamespaceOnly;NamespaceWithResources;NamespaceWithResourceSelectors
type SelectionScope string

// The values of SelectionScope.
const (
	// NamespaceWithResources selects all resources in it.
	NamespaceWithResources SelectionScope = "NamespaceWithResources"
	// NamespaceOnly selects only the Namespace.
	NamespaceOnly SelectionScope = "NamespaceOnly"
	// NamespaceWithResourceSelectors selects the Namespace, and those resources in it that the other
	// selectors select.
	NamespaceWithResourceSelectors SelectionScope = "NamespaceWithResourceSelectors"
)

// ResourceSelector selects resources of one kind on the hub: by name, by labels, or all of them.
//
// +kubebuilder:validation:XValidation:rule="!has(self.labelSelector) || !has(self.name) || size(self.name) == 0",message="name and labelSelector exclude each other"
// +kubebuilder:validation:XValidation:rule="!has(self.selectionScope) || self.selectionScope == 'NamespaceWithResources' || size(self.group) == 0 && self.kind == 'Namespace'",message="selectionScope is for the kind Namespace only"
type ResourceSelector struct {
	// Group of the API, empty for core.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group"`
	// Version of the API.
	// +required
	Version limits.Name `json:"version"`
	// Kind of the resources.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// Name of the single resource.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// LabelSelector of the resources.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
	// SelectionScope is the extent of the selection of a Namespace.
	// +optional
	// +kubebuilder:default=NamespaceWithResources
	SelectionScope SelectionScope `json:"selectionScope,omitempty"`
}

// PlacementStatus is written by the hub only.
type PlacementStatus struct {
	// SelectedResources are the placed resources, at most a thousand.
	// +optional
	SelectedResources []ResourceIdentifier `json:"selectedResources,omitempty"`
	// ObservedResourceIndex increases when the selected resources change. With the strategy type
	// External, it is the version of all picked members, and empty if they have several versions.
	// +optional
	ObservedResourceIndex string `json:"observedResourceIndex,omitempty"`
	// PlacementStatuses has an entry per picked member. If there are too many, members that need
	// attention keep theirs. It also has an entry per member that the policy requests and the hub
	// could not pick, at most a hundred.
	// +optional
	PlacementStatuses []PerClusterStatus `json:"placementStatuses,omitempty"`
	// Conditions: Scheduled, RolloutStarted, Overridden, WorkSynchronized, Applied and Available, or
	// DiffReported instead of the last two. Each has the prefix ClusterResourcePlacement or
	// ResourcePlacement. ResourceSelected, with the same prefix, is present while selectors are
	// invalid. Supported is False while the spec has fields without an effect.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Obstacles give the reasons why members are not picked, or would not be picked now. A Muster
	// addition.
	// +optional
	Obstacles []Obstacle `json:"obstacles,omitempty"`
	// Members is the number of fully available members out of the picked ones, such as 2/3. A Muster
	// addition.
	// +optional
	Members string `json:"members,omitempty"`
	// Message names the most urgent problem; empty if everything is available everywhere. A Muster
	// addition.
	// +optional
	Message string `json:"message,omitempty"`
	// ResourceIndexes are the kept versions of the selected resources for staged update runs, the
	// latest last. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxItems=2000
	ResourceIndexes []string `json:"resourceIndexes,omitempty"`
	// ResourceHash identifies the selected resources. A Muster addition.
	// +optional
	ResourceHash string `json:"resourceHash,omitempty"`
	// PolicyHash identifies the required terms of the policy for all picked members. A Muster
	// addition.
	// +optional
	PolicyHash string `json:"policyHash,omitempty"`
}

// Obstacle is the reason why a member is not picked, or would not be picked now. A Muster addition.
type Obstacle struct {
	// ClusterName is the name of a MemberCluster, or <workspace>/<name> of a Cluster.
	// +required
	ClusterName string `json:"clusterName"`
	// Reason in one word, such as TaintNotTolerated. Kept means: the member was picked before and
	// stays picked.
	// +required
	Reason string `json:"reason"`
	// Message explains the reason in a sentence.
	// +optional
	Message string `json:"message,omitempty"`
}

// ResourceIdentifier names a resource.
type ResourceIdentifier struct {
	// Group of the API, empty for core.
	// +optional
	Group string `json:"group,omitempty"`
	// Version of the API.
	// +required
	Version string `json:"version"`
	// Kind of the resource.
	// +required
	Kind string `json:"kind"`
	// Name of the resource.
	// +required
	Name string `json:"name"`
	// Namespace of the resource, empty if its kind has none.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Envelope of the resource; none if a selector selects the resource itself.
	// +optional
	Envelope *EnvelopeIdentifier `json:"envelope,omitempty"`
}

// EnvelopeIdentifier names the envelope of a resource.
type EnvelopeIdentifier struct {
	// Name of the envelope.
	// +required
	Name string `json:"name"`
	// Namespace of the envelope, empty if its kind has none.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Type is the kind of the envelope. ConfigMap is accepted because older releases of KubeFleet
	// wrote it. Muster never writes it.
	// +optional
	// +kubebuilder:default=ConfigMap
	// +kubebuilder:validation:Enum=ConfigMap;ClusterResourceEnvelope;ResourceEnvelope
	Type string `json:"type,omitempty"`
}

// PerClusterStatus is the state of a placement on one member, or the reason why the hub could not
// pick a member for the policy.
type PerClusterStatus struct {
	// ClusterName is the name of a MemberCluster, or <workspace>/<name> of a Cluster. It is empty if
	// the policy requests more members than there are.
	// +optional
	ClusterName string `json:"clusterName,omitempty"`
	// ObservedResourceIndex is the version of the resources sent to the member, or next to be sent.
	// +optional
	ObservedResourceIndex string `json:"observedResourceIndex,omitempty"`
	// ApplicableResourceOverrides are the ResourceOverrides for the member, each with a number that
	// counts its changes from 0. Both kinds together have at most a thousand entries over all members.
	// +optional
	ApplicableResourceOverrides []NamespacedName `json:"applicableResourceOverrides,omitempty"`
	// ApplicableClusterResourceOverrides are the ClusterResourceOverrides for the member, named
	// likewise.
	// +optional
	ApplicableClusterResourceOverrides []string `json:"applicableClusterResourceOverrides,omitempty"`
	// FailedPlacements are the resources not applied or not available on the member, at most ten.
	// +optional
	FailedPlacements []FailedPlacement `json:"failedPlacements,omitempty"`
	// DriftedPlacements are the resources changed on the member since they were applied: at most ten,
	// and a hundred over all members.
	// +optional
	DriftedPlacements []DriftedPlacement `json:"driftedPlacements,omitempty"`
	// DiffedPlacements are the resources not applied because they differ on the member: at most ten,
	// and a hundred over all members.
	// +optional
	DiffedPlacements []DiffedPlacement `json:"diffedPlacements,omitempty"`
	// Conditions: Scheduled, RolloutStarted, Overridden, WorkSynchronized, Applied and Available;
	// DiffReported instead of the last two if resources are only compared.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// FailedPlacement is a resource that is not applied or not available on a member, with the cause.
type FailedPlacement struct {
	ResourceIdentifier `json:",inline"`
	// Condition is the report of the member's agent.
	// +required
	Condition metav1.Condition `json:"condition"`
}

// DriftedPlacement is a resource changed on a member since it was applied.
type DriftedPlacement struct {
	ResourceIdentifier `json:",inline"`
	// ObservationTime is when the member's agent first saw it as it is described here.
	// +optional
	ObservationTime metav1.Time `json:"observationTime,omitempty"`
	// TargetClusterObservedGeneration is the metadata.generation of the object on the member; 0
	// if its kind has none.
	// +optional
	TargetClusterObservedGeneration int64 `json:"targetClusterObservedGeneration"`
	// FirstDriftedObservedTime is when the agent first saw any difference.
	// +optional
	FirstDriftedObservedTime metav1.Time `json:"firstDriftedObservedTime,omitempty"`
	// ObservedDrifts are the differences, at most ten.
	// +optional
	ObservedDrifts []PatchDetail `json:"observedDrifts,omitempty"`
}

// DiffedPlacement is a resource not applied because it differs on a member.
type DiffedPlacement struct {
	ResourceIdentifier `json:",inline"`
	// ObservationTime is when the member's agent first saw it as it is described here.
	// +optional
	ObservationTime metav1.Time `json:"observationTime,omitempty"`
	// TargetClusterObservedGeneration is the metadata.generation of the object on the member; null if
	// the object does not exist.
	// +optional
	TargetClusterObservedGeneration *int64 `json:"targetClusterObservedGeneration,omitempty"`
	// FirstDiffedObservedTime is when the agent first saw any difference.
	// +optional
	FirstDiffedObservedTime metav1.Time `json:"firstDiffedObservedTime,omitempty"`
	// ObservedDiffs are the differences, at most ten.
	// +optional
	ObservedDiffs []PatchDetail `json:"observedDiffs,omitempty"`
}
