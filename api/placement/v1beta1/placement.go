package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/api/limits"
)

// ClusterResourcePlacement places resources of the hub on members. It selects cluster-scoped
// resources, and Namespaces with the resources in them.
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

// ResourcePlacement places resources of its own namespace on members, in the namespace with the
// same name. That namespace must exist on the members.
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

// PlacementSpec is the desired state of a placement. Users write it.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.policy) || has(self.policy)",message="policy cannot be removed once it is set"
type PlacementSpec struct {
	// resourceSelectors select the resources. A resource is selected if one of them matches.
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	ResourceSelectors []ResourceSelector `json:"resourceSelectors"`
	// policy picks the members. Default: all members.
	// +optional
	Policy *PlacementPolicy `json:"policy,omitempty"`
	// strategy defines the rollout of changes to the members.
	// +optional
	Strategy RolloutStrategy `json:"strategy,omitempty"`
	// revisionHistoryLimit is the number of versions of the selected resources that the hub keeps for
	// staged update runs. Only the strategy type External keeps versions.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
	// statusReportingScope decides where users can read the status. With ClusterScopeOnly, only the
	// placement has it. With NamespaceAccessible, the hub copies the status of a
	// ClusterResourcePlacement to a ClusterResourcePlacementStatus in the one selected Namespace.
	// Default: ClusterScopeOnly.
	// +optional
	// +kubebuilder:default=ClusterScopeOnly
	StatusReportingScope StatusReportingScope `json:"statusReportingScope,omitempty"`
}

// SelectionScope decides how much of a selected Namespace is placed.
//
// +kubebuilder:validation:Enum=NamespaceOnly;NamespaceWithResources;NamespaceWithResourceSelectors
type SelectionScope string

// The values of SelectionScope.
const (
	// NamespaceWithResources selects all resources in it.
	NamespaceWithResources SelectionScope = "NamespaceWithResources"
	// NamespaceOnly selects only the Namespace.
	NamespaceOnly SelectionScope = "NamespaceOnly"
	// NamespaceWithResourceSelectors selects the Namespace, and the resources in it that match other
	// selectors.
	NamespaceWithResourceSelectors SelectionScope = "NamespaceWithResourceSelectors"
)

// ResourceSelector selects resources of one kind on the hub: by name, by labels, or all of them.
//
// +kubebuilder:validation:XValidation:rule="!has(self.labelSelector) || !has(self.name) || size(self.name) == 0",message="name and labelSelector exclude each other"
// +kubebuilder:validation:XValidation:rule="!has(self.selectionScope) || self.selectionScope == 'NamespaceWithResources' || size(self.group) == 0 && self.kind == 'Namespace'",message="selectionScope is for the kind Namespace only"
type ResourceSelector struct {
	// group is the API group; empty for the core group.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group"`
	// version is the API version.
	// +required
	Version limits.Name `json:"version"`
	// kind is the kind of the resources.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// name is the name of one resource.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// labelSelector is the label selector of the resources.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
	// selectionScope decides how much of a selected Namespace is placed.
	// +optional
	// +kubebuilder:default=NamespaceWithResources
	SelectionScope SelectionScope `json:"selectionScope,omitempty"`
}

// PlacementStatus is the observed state of a placement. Only the hub writes it.
type PlacementStatus struct {
	// selectedResources are the placed resources, at most a thousand.
	// +optional
	SelectedResources []ResourceIdentifier `json:"selectedResources,omitempty"`
	// observedResourceIndex increases with each change of the selected resources. With the strategy
	// type External, it is the version on all picked members, and empty if they have different
	// versions.
	// +optional
	ObservedResourceIndex string `json:"observedResourceIndex,omitempty"`
	// placementStatuses has an entry per picked member. If the list gets too long, only members that
	// need attention keep their entry. A member that the policy requests and the hub could not pick
	// also has an entry; there are at most a hundred of these.
	// +optional
	PlacementStatuses []PerClusterStatus `json:"placementStatuses,omitempty"`
	// conditions: Scheduled, RolloutStarted, Overridden, WorkSynchronized, Applied and Available, or
	// DiffReported instead of the last two. Each has the prefix ClusterResourcePlacement or
	// ResourcePlacement. ResourceSelected, with the same prefix, is present while selectors are
	// invalid. Supported is False while the spec has fields without an effect.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// obstacles list the members that are not picked, or would not be picked now, with the reason. A
	// Muster addition.
	// +optional
	Obstacles []Obstacle `json:"obstacles,omitempty"`
	// members counts the picked members with all resources available, as in 2/3. A Muster addition.
	// +optional
	Members string `json:"members,omitempty"`
	// message names the most urgent problem. Empty if all resources are available on all members. A
	// Muster addition.
	// +optional
	Message string `json:"message,omitempty"`
	// resourceIndexes are the versions of the selected resources that the hub keeps for staged update
	// runs, the latest last. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxItems=2000
	ResourceIndexes []string `json:"resourceIndexes,omitempty"`
	// resourceHash identifies the selected resources. A Muster addition.
	// +optional
	ResourceHash string `json:"resourceHash,omitempty"`
	// policyHash identifies the required terms of the policy. All picked members satisfied them. A
	// Muster addition.
	// +optional
	PolicyHash string `json:"policyHash,omitempty"`
}

// Obstacle is the reason why a member is not picked, or would not be picked now. A Muster addition.
type Obstacle struct {
	// clusterName is the name of a MemberCluster, or <workspace>/<name> of a Cluster.
	// +required
	ClusterName string `json:"clusterName"`
	// reason is the reason is the reason in one word, such as TaintNotTolerated. Kept means that the
	// member was picked earlier, and stays picked.
	// +required
	Reason string `json:"reason"`
	// message explains the reason in a sentence.
	// +optional
	Message string `json:"message,omitempty"`
}

// ResourceIdentifier names a resource.
type ResourceIdentifier struct {
	// group is the API group; empty for the core group.
	// +optional
	Group string `json:"group,omitempty"`
	// version is the API version.
	// +required
	Version string `json:"version"`
	// kind is the kind of the resource.
	// +required
	Kind string `json:"kind"`
	// name is the name of the resource.
	// +required
	Name string `json:"name"`
	// namespace is the namespace of the resource; empty if its kind has none.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// envelope is the envelope of the resource. Absent if a selector selects the resource itself.
	// +optional
	Envelope *EnvelopeIdentifier `json:"envelope,omitempty"`
}

// EnvelopeIdentifier names the envelope of a resource.
type EnvelopeIdentifier struct {
	// name is the name of the envelope.
	// +required
	Name string `json:"name"`
	// namespace is the namespace of the envelope; empty if its kind has none.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// type is the kind of the envelope. ConfigMap is accepted because older releases of KubeFleet
	// wrote it. Muster never writes it.
	// +optional
	// +kubebuilder:default=ConfigMap
	// +kubebuilder:validation:Enum=ConfigMap;ClusterResourceEnvelope;ResourceEnvelope
	Type string `json:"type,omitempty"`
}

// PerClusterStatus is the state of a placement on one member, or the reason why the hub could not
// pick a member.
type PerClusterStatus struct {
	// clusterName is the name of a MemberCluster, or <workspace>/<name> of a Cluster. It is empty if
	// the policy requests more members than there are.
	// +optional
	ClusterName string `json:"clusterName,omitempty"`
	// observedResourceIndex is the version of the resources that the hub has sent to the member, or
	// sends next.
	// +optional
	ObservedResourceIndex string `json:"observedResourceIndex,omitempty"`
	// applicableResourceOverrides are the ResourceOverrides for the member. Each name ends with the
	// number of changes of the override, from 0. Over all members, both kinds of overrides have at
	// most a thousand entries.
	// +optional
	ApplicableResourceOverrides []NamespacedName `json:"applicableResourceOverrides,omitempty"`
	// applicableClusterResourceOverrides are the ClusterResourceOverrides for the member, with names
	// of the same form.
	// +optional
	ApplicableClusterResourceOverrides []string `json:"applicableClusterResourceOverrides,omitempty"`
	// failedPlacements are resources that are not applied or not available on the member, at most ten.
	// +optional
	FailedPlacements []FailedPlacement `json:"failedPlacements,omitempty"`
	// driftedPlacements are resources that were changed on the member after they were applied: at most
	// ten, and a hundred over all members.
	// +optional
	DriftedPlacements []DriftedPlacement `json:"driftedPlacements,omitempty"`
	// diffedPlacements are resources that were not applied, because they differ on the member: at most
	// ten, and a hundred over all members.
	// +optional
	DiffedPlacements []DiffedPlacement `json:"diffedPlacements,omitempty"`
	// conditions: Scheduled, RolloutStarted, Overridden, WorkSynchronized, Applied and Available;
	// DiffReported instead of the last two if resources are only compared.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// FailedPlacement is a resource that is not applied or not available on a member, with the cause.
type FailedPlacement struct {
	ResourceIdentifier `json:",inline"`
	// condition is the condition that the member's agent reported.
	// +required
	Condition metav1.Condition `json:"condition"`
}

// DriftedPlacement is a resource that was changed on a member after it was applied.
type DriftedPlacement struct {
	ResourceIdentifier `json:",inline"`
	// observationTime is the time when the member's agent first observed the current differences.
	// +optional
	ObservationTime metav1.Time `json:"observationTime,omitempty"`
	// targetClusterObservedGeneration is the metadata.generation of the object on the member; 0
	// if its kind has none.
	// +optional
	TargetClusterObservedGeneration int64 `json:"targetClusterObservedGeneration"`
	// firstDriftedObservedTime is the time when the agent first observed a difference.
	// +optional
	FirstDriftedObservedTime metav1.Time `json:"firstDriftedObservedTime,omitempty"`
	// observedDrifts are the differences, at most ten.
	// +optional
	ObservedDrifts []PatchDetail `json:"observedDrifts,omitempty"`
}

// DiffedPlacement is a resource that was not applied, because it differs on a member.
type DiffedPlacement struct {
	ResourceIdentifier `json:",inline"`
	// observationTime is the time when the member's agent first observed the current differences.
	// +optional
	ObservationTime metav1.Time `json:"observationTime,omitempty"`
	// targetClusterObservedGeneration is the metadata.generation of the object on the member; null if
	// the object does not exist.
	// +optional
	TargetClusterObservedGeneration *int64 `json:"targetClusterObservedGeneration,omitempty"`
	// firstDiffedObservedTime is the time when the agent first observed a difference.
	// +optional
	FirstDiffedObservedTime metav1.Time `json:"firstDiffedObservedTime,omitempty"`
	// observedDiffs are the differences, at most ten.
	// +optional
	ObservedDiffs []PatchDetail `json:"observedDiffs,omitempty"`
}
