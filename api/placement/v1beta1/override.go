package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/muster-fleet/muster/api/limits"
)

// ClusterResourceOverride changes resources of placements on some members: cluster-scoped
// resources, and all resources in the Namespaces that it selects.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=clusterresourceoverrides,scope=Cluster,categories={fleet,fleet-placement}
type ClusterResourceOverride struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec ClusterResourceOverrideSpec `json:"spec"`
}

// ClusterResourceOverrideList is a list of ClusterResourceOverrides.
//
// +kubebuilder:object:root=true
type ClusterResourceOverrideList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterResourceOverride `json:"items"`
}

// ClusterResourceOverrideSpec is written by users.
//
// +kubebuilder:validation:XValidation:rule="!has(self.placement) || !has(self.placement.scope) || self.placement.scope == 'Cluster'",message="a ClusterResourceOverride can only name a ClusterResourcePlacement: placement.scope must be Cluster"
type ClusterResourceOverrideSpec struct {
	// Placement that the override is for; default: every placement that brings what is selected.
	// +optional
	Placement *PlacementRef `json:"placement,omitempty"`
	// ClusterResourceSelectors select cluster-scoped resources by name. A Namespace is selected with
	// all resources in it.
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	ClusterResourceSelectors []ResourceSelector `json:"clusterResourceSelectors"`
	// Policy defines the changes and their members.
	// +required
	Policy *OverridePolicy `json:"policy"`
}

// ResourceOverride changes resources of placements on some members: resources of its own namespace.
// A ClusterResourceOverride applies first, so on the same field the ResourceOverride wins.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=resourceoverrides,categories={fleet,fleet-placement}
type ResourceOverride struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec ResourceOverrideSpec `json:"spec"`
}

// ResourceOverrideList is a list of ResourceOverrides.
//
// +kubebuilder:object:root=true
type ResourceOverrideList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceOverride `json:"items"`
}

// ResourceOverrideSpec is written by users.
type ResourceOverrideSpec struct {
	// Placement that the override is for; default: every placement that brings what is selected.
	// +optional
	Placement *PlacementRef `json:"placement,omitempty"`
	// ResourceSelectors select resources of this namespace by name.
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	ResourceSelectors []ResourceSelector `json:"resourceSelectors"`
	// Policy defines the changes and their members.
	// +required
	Policy *OverridePolicy `json:"policy"`
}

// PlacementRef names a placement.
type PlacementRef struct {
	// Name of the placement.
	// +required
	Name limits.Name `json:"name"`
	// Scope is Cluster for a ClusterResourcePlacement, or Namespaced for a ResourcePlacement in the
	// namespace of the override.
	// +optional
	// +kubebuilder:default=Cluster
	// +kubebuilder:validation:Enum=Cluster;Namespaced
	Scope ResourceScope `json:"scope,omitempty"`
}

// ResourceScope is the kind of a placement.
type ResourceScope string

// The scopes of placements.
const (
	// ClusterScoped means a ClusterResourcePlacement. It is the default.
	ClusterScoped ResourceScope = "Cluster"
	// NamespaceScoped means a ResourcePlacement.
	NamespaceScoped ResourceScope = "Namespaced"
)

// OverridePolicy defines the changes and their members.
type OverridePolicy struct {
	// OverrideRules apply in their order.
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	OverrideRules []OverrideRule `json:"overrideRules"`
}

// OverrideType is the way a rule changes resources.
//
// +kubebuilder:validation:Enum=JSONPatch;Delete
type OverrideType string

// The ways of changing resources.
const (
	// OverrideJSONPatch applies jsonPatchOverrides.
	OverrideJSONPatch OverrideType = "JSONPatch"
	// OverrideDelete leaves out the resources on the selected members.
	OverrideDelete OverrideType = "Delete"
)

// OverrideRule changes resources on some members.
//
// +kubebuilder:validation:XValidation:rule="!has(self.overrideType) || self.overrideType != 'Delete' || !has(self.jsonPatchOverrides)",message="jsonPatchOverrides are for overrideType JSONPatch only"
type OverrideRule struct {
	// ClusterSelector selects the members by labels of their Clusters or MemberClusters. A selector
	// without terms selects all members; no selector selects none.
	// +optional
	ClusterSelector *ClusterSelector `json:"clusterSelector,omitempty"`
	// OverrideType is JSONPatch or Delete.
	// +optional
	// +kubebuilder:default=JSONPatch
	OverrideType OverrideType `json:"overrideType,omitempty"`
	// JSONPatchOverrides apply in their order.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	JSONPatchOverrides []JSONPatchOverride `json:"jsonPatchOverrides,omitempty"`
}

// JSONPatchOverride is one operation of RFC 6902.
type JSONPatchOverride struct {
	// Operator is add, remove or replace.
	// +required
	// +kubebuilder:validation:Enum=add;remove;replace
	Operator string `json:"op"`
	// Path of the field as a JSON pointer. In metadata only labels and annotations can be changed.
	// kind, apiVersion and status cannot be changed.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path"`
	// Value of the field; none for remove. In its texts ${MEMBER-CLUSTER-NAME} stands for the name of
	// the member. ${MEMBER-CLUSTER-LABEL-KEY-<key>} stands for the value of a label of its Cluster or
	// MemberCluster. The label must exist.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Value *runtime.RawExtension `json:"value,omitempty"`
}

// NamespacedName names an object in a namespace.
type NamespacedName struct {
	// Name of the object.
	// +required
	Name limits.Name `json:"name"`
	// Namespace of the object.
	// +required
	Namespace limits.Name `json:"namespace"`
}
