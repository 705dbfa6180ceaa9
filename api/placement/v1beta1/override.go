package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/muster-fleet/muster/api/limits"
)

// ClusterResourceOverride changes the resources of placements for some members. It applies to
// cluster-scoped resources, and to all resources in the Namespaces that it selects.
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

// ClusterResourceOverrideSpec is the desired state of a ClusterResourceOverride. Users write it.
//
// +kubebuilder:validation:XValidation:rule="!has(self.placement) || !has(self.placement.scope) || self.placement.scope == 'Cluster'",message="a ClusterResourceOverride can only name a ClusterResourcePlacement: placement.scope must be Cluster"
type ClusterResourceOverrideSpec struct {
	// placement limits the override to one placement. Default: every placement of the selected
	// resources.
	// +optional
	Placement *PlacementRef `json:"placement,omitempty"`
	// clusterResourceSelectors select cluster-scoped resources by name. A selected Namespace includes
	// all resources in it.
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	ClusterResourceSelectors []ResourceSelector `json:"clusterResourceSelectors"`
	// policy defines the changes, and the members that get them.
	// +required
	Policy *OverridePolicy `json:"policy"`
}

// ResourceOverride changes the resources of placements for some members. It applies to resources of
// its own namespace. ClusterResourceOverrides apply first, so a ResourceOverride wins if both
// change a field.
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

// ResourceOverrideSpec is the desired state of a ResourceOverride. Users write it.
type ResourceOverrideSpec struct {
	// placement limits the override to one placement. Default: every placement of the selected
	// resources.
	// +optional
	Placement *PlacementRef `json:"placement,omitempty"`
	// resourceSelectors select resources of this namespace by name.
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	ResourceSelectors []ResourceSelector `json:"resourceSelectors"`
	// policy defines the changes, and the members that get them.
	// +required
	Policy *OverridePolicy `json:"policy"`
}

// PlacementRef names a placement.
type PlacementRef struct {
	// name is the name of the placement.
	// +required
	Name limits.Name `json:"name"`
	// scope is Cluster for a ClusterResourcePlacement, or Namespaced for a ResourcePlacement in the
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

// OverridePolicy defines the changes, and the members that get them.
type OverridePolicy struct {
	// overrideRules apply in their order.
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
	// OverrideDelete omits the resources on the selected members.
	OverrideDelete OverrideType = "Delete"
)

// OverrideRule changes the resources for some members.
//
// +kubebuilder:validation:XValidation:rule="!has(self.overrideType) || self.overrideType != 'Delete' || !has(self.jsonPatchOverrides)",message="jsonPatchOverrides are for overrideType JSONPatch only"
type OverrideRule struct {
	// clusterSelector selects members by the labels of their Clusters or MemberClusters. A selector
	// without terms selects all members. Without a selector, the rule selects none.
	// +optional
	ClusterSelector *ClusterSelector `json:"clusterSelector,omitempty"`
	// overrideType is JSONPatch or Delete.
	// +optional
	// +kubebuilder:default=JSONPatch
	OverrideType OverrideType `json:"overrideType,omitempty"`
	// jsonPatchOverrides apply in their order.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	JSONPatchOverrides []JSONPatchOverride `json:"jsonPatchOverrides,omitempty"`
}

// JSONPatchOverride is one operation of RFC 6902.
type JSONPatchOverride struct {
	// op is add, remove or replace.
	// +required
	// +kubebuilder:validation:Enum=add;remove;replace
	Operator string `json:"op"`
	// path is the path of the field as a JSON pointer. In metadata it can change only labels and
	// annotations. It cannot change kind, apiVersion and status.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path"`
	// value is the value of the field; none for remove. Two variables in it are replaced.
	// ${MEMBER-CLUSTER-NAME} is the name of the member. ${MEMBER-CLUSTER-LABEL-KEY-<key>} is the value
	// of a label of its Cluster or MemberCluster; the label must exist.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Value *runtime.RawExtension `json:"value,omitempty"`
}

// NamespacedName names an object in a namespace.
type NamespacedName struct {
	// name is the name of the object.
	// +required
	Name limits.Name `json:"name"`
	// namespace is the namespace of the object.
	// +required
	Namespace limits.Name `json:"namespace"`
}
