package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/api/limits"
)

// ClusterResourcePlacement places resources of the hub on members: cluster-scoped ones, and
// namespaces with what is in them.
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

// ResourcePlacement places resources of its own namespace on the hub in the namespace of the same
// name on members, which must be there.
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
	// ResourceSelectors of which each adds the resources that it selects.
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	ResourceSelectors []ResourceSelector `json:"resourceSelectors"`
	// Policy says which members are picked; default: all.
	// +optional
	Policy *PlacementPolicy `json:"policy,omitempty"`
	// Strategy says how what changes is brought to the members.
	// +optional
	Strategy RolloutStrategy `json:"strategy,omitempty"`
	// RevisionHistoryLimit is how many versions of what is selected are kept for staged update runs,
	// if the strategy's type is External; else none is kept.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
	// StatusReportingScope says where the status is shown: on the placement, or also in a
	// ClusterResourcePlacementStatus in the one Namespace that a ClusterResourcePlacement selects.
	// Default: ClusterScopeOnly.
	// +optional
	// +kubebuilder:default=ClusterScopeOnly
	StatusReportingScope StatusReportingScope `json:"statusReportingScope,omitempty"`
}

// StatusReportingScope says where the status of a placement is shown.
//
// +kubebuilder:validation:Enum=ClusterScopeOnly;NamespaceAccessible
type StatusReportingScope string

// Where the status of a placement is shown.
const (
	// ClusterScopeOnly shows it on the placement only.
	ClusterScopeOnly StatusReportingScope = "ClusterScopeOnly"
	// NamespaceAccessible shows a copy in the Namespace that the placement selects, too.
	NamespaceAccessible StatusReportingScope = "NamespaceAccessible"
)

// SelectionScope is what selecting a Namespace brings.
//
// +kubebuilder:validation:Enum=NamespaceOnly;NamespaceWithResources;NamespaceWithResourceSelectors
type SelectionScope string

// What selecting a Namespace brings.
const (
	// NamespaceWithResources brings everything in it.
	NamespaceWithResources SelectionScope = "NamespaceWithResources"
	// NamespaceOnly brings the Namespace alone.
	NamespaceOnly SelectionScope = "NamespaceOnly"
	// NamespaceWithResourceSelectors brings the Namespace, and of what is in it what the
	// other selectors select.
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
	// Name of the one resource.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// LabelSelector of the resources.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
	// SelectionScope is what selecting a Namespace brings.
	// +optional
	// +kubebuilder:default=NamespaceWithResources
	SelectionScope SelectionScope `json:"selectionScope,omitempty"`
}

// PlacementStatus is written by the hub only.
type PlacementStatus struct {
	// SelectedResources are what is placed, at most a thousand of them.
	// +optional
	SelectedResources []ResourceIdentifier `json:"selectedResources,omitempty"`
	// ObservedResourceIndex counts up whenever what is selected changes. If the strategy's type is
	// External, it is the version that all picked members have, and empty if they have several.
	// +optional
	ObservedResourceIndex string `json:"observedResourceIndex,omitempty"`
	// PlacementStatuses has an entry per picked member, of too many those that need attention first,
	// and one per member that the policy asks for and that could not be picked, at most a hundred.
	// +optional
	PlacementStatuses []PerClusterStatus `json:"placementStatuses,omitempty"`
	// Conditions: Scheduled, RolloutStarted, Overridden, WorkSynchronized, Applied and Available, or
	// DiffReported instead of the last two, each behind ClusterResourcePlacement or ResourcePlacement,
	// as is ResourceSelected while selectors cannot be meant; and Supported, which is False, while the
	// spec has fields without an effect.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Obstacles say of some members why they are not picked, or why they would not be picked
	// now. A Muster addition.
	// +optional
	Obstacles []Obstacle `json:"obstacles,omitempty"`
	// Members is on how many of the picked members everything is available, such as
	// 2/3. A Muster addition.
	// +optional
	Members string `json:"members,omitempty"`
	// Message says what most needs attention; empty if everything is available
	// everywhere. A Muster addition.
	// +optional
	Message string `json:"message,omitempty"`
	// ResourceIndexes are the versions of what is selected that are kept for staged update runs, the
	// latest last. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxItems=2000
	ResourceIndexes []string `json:"resourceIndexes,omitempty"`
	// ResourceHash identifies what is selected. A Muster addition.
	// +optional
	ResourceHash string `json:"resourceHash,omitempty"`
	// PolicyHash identifies the required terms that all picked members were picked by. A Muster
	// addition.
	// +optional
	PolicyHash string `json:"policyHash,omitempty"`
}

// Obstacle says why a member is not picked, or would not be picked now. A Muster addition.
type Obstacle struct {
	// ClusterName is the name of a MemberCluster, or <workspace>/<name> of a Cluster.
	// +required
	ClusterName string `json:"clusterName"`
	// Reason in one word, such as TaintNotTolerated. Kept: the member was picked before and stays so.
	// +required
	Reason string `json:"reason"`
	// Message says the same in a sentence.
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
	// Envelope that the resource is wrapped in; none if it was selected itself.
	// +optional
	Envelope *EnvelopeIdentifier `json:"envelope,omitempty"`
}

// EnvelopeIdentifier names the envelope that a resource is wrapped in.
type EnvelopeIdentifier struct {
	// Name of the envelope.
	// +required
	Name string `json:"name"`
	// Namespace of the envelope, empty if its kind has none.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Type is the kind of the envelope. ConfigMap is accepted because older releases of KubeFleet
	// wrote it; Muster never does.
	// +optional
	// +kubebuilder:default=ConfigMap
	// +kubebuilder:validation:Enum=ConfigMap;ClusterResourceEnvelope;ResourceEnvelope
	Type string `json:"type,omitempty"`
}

// PerClusterStatus says how a placement is on one member, or why it is not on one that
// the policy asks for.
type PerClusterStatus struct {
	// ClusterName is the name of a MemberCluster, or <workspace>/<name> of a Cluster; empty if the
	// policy asks for more members than there are.
	// +optional
	ClusterName string `json:"clusterName,omitempty"`
	// ObservedResourceIndex is which selection of resources the member was asked for, or waits for.
	// +optional
	ObservedResourceIndex string `json:"observedResourceIndex,omitempty"`
	// ApplicableResourceOverrides are the ResourceOverrides that change what the member gets, each
	// with a number that counts its changes from 0; of both kinds at most a thousand of all members.
	// +optional
	ApplicableResourceOverrides []NamespacedName `json:"applicableResourceOverrides,omitempty"`
	// ApplicableClusterResourceOverrides are the ClusterResourceOverrides that change what the member
	// gets, named likewise.
	// +optional
	ApplicableClusterResourceOverrides []string `json:"applicableClusterResourceOverrides,omitempty"`
	// FailedPlacements are the resources that are not applied or not available there, at most ten.
	// +optional
	FailedPlacements []FailedPlacement `json:"failedPlacements,omitempty"`
	// DriftedPlacements are the resources that were changed there since they were applied, at most
	// ten, and a hundred of all members.
	// +optional
	DriftedPlacements []DriftedPlacement `json:"driftedPlacements,omitempty"`
	// DiffedPlacements are the resources that differ there and are not applied for that reason, at
	// most ten, and a hundred of all members.
	// +optional
	DiffedPlacements []DiffedPlacement `json:"diffedPlacements,omitempty"`
	// Conditions: Scheduled, RolloutStarted, Overridden, WorkSynchronized, Applied and Available;
	// DiffReported instead of the last two if resources are only compared.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// FailedPlacement is a resource that is not applied or not available on a member, and why.
type FailedPlacement struct {
	ResourceIdentifier `json:",inline"`
	// Condition is what the member's agent says.
	// +required
	Condition metav1.Condition `json:"condition"`
}

// DriftedPlacement is a resource that was changed on a member since it was applied.
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

// DiffedPlacement is a resource that differs on a member, and is not applied for that reason.
type DiffedPlacement struct {
	ResourceIdentifier `json:",inline"`
	// ObservationTime is when the member's agent first saw it as it is described here.
	// +optional
	ObservationTime metav1.Time `json:"observationTime,omitempty"`
	// TargetClusterObservedGeneration is the metadata.generation of the object on the member;
	// null if there is none.
	// +optional
	TargetClusterObservedGeneration *int64 `json:"targetClusterObservedGeneration,omitempty"`
	// FirstDiffedObservedTime is when the agent first saw any difference.
	// +optional
	FirstDiffedObservedTime metav1.Time `json:"firstDiffedObservedTime,omitempty"`
	// ObservedDiffs are the differences, at most ten.
	// +optional
	ObservedDiffs []PatchDetail `json:"observedDiffs,omitempty"`
}
