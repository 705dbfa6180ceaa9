package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/api/limits"
)

// PlacementType is the way of picking members.
//
// +kubebuilder:validation:Enum=PickAll;PickN;PickFixed
type PlacementType string

// The ways of picking members.
const (
	// PickAll picks every eligible member.
	PickAll PlacementType = "PickAll"
	// PickN picks a number of the eligible members, the best first.
	PickN PlacementType = "PickN"
	// PickFixed picks the named members.
	PickFixed PlacementType = "PickFixed"
)

// PlacementPolicy picks members.
//
// +kubebuilder:validation:XValidation:rule="self.placementType == oldSelf.placementType",message="placementType cannot be changed; create another placement"
// +kubebuilder:validation:XValidation:rule="self.placementType == 'PickFixed' || !has(self.clusterNames)",message="clusterNames is for PickFixed only"
// +kubebuilder:validation:XValidation:rule="self.placementType == 'PickN' ? has(self.numberOfClusters) : !has(self.numberOfClusters)",message="numberOfClusters is for PickN only, which needs it"
// +kubebuilder:validation:XValidation:rule="self.placementType == 'PickN' || !has(self.topologySpreadConstraints)",message="topologySpreadConstraints is for PickN only"
// +kubebuilder:validation:XValidation:rule="self.placementType != 'PickFixed' || !has(self.affinity) && !has(self.tolerations)",message="PickFixed takes clusterNames only"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.tolerations) || has(self.tolerations) && oldSelf.tolerations.all(o, self.tolerations.exists(t, t == o))",message="tolerations can only be added"
type PlacementPolicy struct {
	// placementType is PickAll, PickN or PickFixed.
	// +optional
	// +kubebuilder:default=PickAll
	PlacementType PlacementType `json:"placementType,omitempty"`
	// clusterNames are the members for PickFixed: the names of MemberClusters, and <workspace>/<name>
	// of Clusters. An empty list picks no member.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=253
	ClusterNames []string `json:"clusterNames,omitempty"`
	// numberOfClusters is the number of members for PickN.
	// +optional
	// +kubebuilder:validation:Minimum=0
	NumberOfClusters *int32 `json:"numberOfClusters,omitempty"`
	// affinity has the required and the preferred terms for members.
	// +optional
	Affinity *Affinity `json:"affinity,omitempty"`
	// topologySpreadConstraints spread the members of PickN over the values of labels.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	TopologySpreadConstraints []TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
	// tolerations permit picking members despite their taints.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	Tolerations []Toleration `json:"tolerations,omitempty"`
}

// Affinity has the required and the preferred terms for members.
type Affinity struct {
	// clusterAffinity has the terms for the member itself.
	// +optional
	ClusterAffinity *ClusterAffinity `json:"clusterAffinity,omitempty"`
}

// ClusterAffinity has the terms for the member itself.
type ClusterAffinity struct {
	// requiredDuringSchedulingIgnoredDuringExecution has terms that must hold for a member to be
	// picked. A picked member stays picked if they no longer hold.
	// +optional
	Required *ClusterSelector `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`
	// preferredDuringSchedulingIgnoredDuringExecution terms rank the members for PickN.
	// +optional
	// +kubebuilder:validation:MaxItems=10
	Preferred []PreferredClusterSelector `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// ClusterSelector selects members.
type ClusterSelector struct {
	// clusterSelectorTerms are the terms of the selector. At least one of them must hold.
	// +required
	// +kubebuilder:validation:MaxItems=10
	ClusterSelectorTerms []ClusterSelectorTerm `json:"clusterSelectorTerms"`
}

// ClusterSelectorTerm holds if all its parts hold.
type ClusterSelectorTerm struct {
	// labelSelector selects by labels of the Cluster or MemberCluster.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
	// propertySelector selects by the reported properties of the member.
	// +optional
	PropertySelector *PropertySelector `json:"propertySelector,omitempty"`
	// propertySorter ranks members by a property. Only preferred terms may have it.
	// +optional
	PropertySorter *PropertySorter `json:"propertySorter,omitempty"`
}

// PropertySelector holds if all its expressions hold.
type PropertySelector struct {
	// matchExpressions are the expressions of the selector. All of them must hold.
	// +required
	// +kubebuilder:validation:MaxItems=100
	MatchExpressions []PropertySelectorRequirement `json:"matchExpressions"`
}

// PropertySelectorOperator compares quantities.
//
// +kubebuilder:validation:Enum=Gt;Ge;Eq;Ne;Lt;Le
type PropertySelectorOperator string

// The ways of comparing.
const (
	PropertyGreater        PropertySelectorOperator = "Gt"
	PropertyGreaterOrEqual PropertySelectorOperator = "Ge"
	PropertyEqual          PropertySelectorOperator = "Eq"
	PropertyNotEqual       PropertySelectorOperator = "Ne"
	PropertyLess           PropertySelectorOperator = "Lt"
	PropertyLessOrEqual    PropertySelectorOperator = "Le"
)

// PropertySelectorRequirement compares one property of a member.
type PropertySelectorRequirement struct {
	// name is the name of a reported property, such as kubernetes-fleet.io/node-count, or of a
	// resource: resources.kubernetes-fleet.io/{total,allocatable,available}-<resource>.
	// +required
	Name limits.Name `json:"name"`
	// operator is Gt, Ge, Eq, Ne, Lt or Le.
	// +required
	Operator PropertySelectorOperator `json:"operator"`
	// values has one entry, the quantity for the comparison.
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1
	Values []limits.Name `json:"values"`
}

// PropertySortOrder is the order of sorting.
//
// +kubebuilder:validation:Enum=Ascending;Descending
type PropertySortOrder string

// The values of PropertySortOrder.
const (
	// Ascending ranks the smallest value first.
	Ascending PropertySortOrder = "Ascending"
	// Descending ranks the largest value first.
	Descending PropertySortOrder = "Descending"
)

// PropertySorter ranks members by a property. The best member gets the whole weight, and the worst
// none. The others get a part in proportion.
type PropertySorter struct {
	// name is the name of the property.
	// +required
	Name limits.Name `json:"name"`
	// sortOrder is Ascending (the smallest value is best) or Descending (the largest value is best).
	// +required
	SortOrder PropertySortOrder `json:"sortOrder"`
}

// PreferredClusterSelector adds a weight to the rank of the selected members.
type PreferredClusterSelector struct {
	// weight is added to the rank of the selected members. It is between -100 and 100.
	// +required
	// +kubebuilder:validation:Minimum=-100
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight"`
	// preference is the preferred term.
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(self.propertySelector)",message="propertySelector is for required terms; prefer with propertySorter"
	Preference ClusterSelectorTerm `json:"preference"`
}

// UnsatisfiableConstraintAction is the treatment of a member that would violate a constraint.
//
// +kubebuilder:validation:Enum=DoNotSchedule;ScheduleAnyway
type UnsatisfiableConstraintAction string

// The values of UnsatisfiableConstraintAction.
const (
	// DoNotSchedule does not pick the member.
	DoNotSchedule UnsatisfiableConstraintAction = "DoNotSchedule"
	// ScheduleAnyway picks the member after all others.
	ScheduleAnyway UnsatisfiableConstraintAction = "ScheduleAnyway"
)

// TopologySpreadConstraint spreads the picked members over the values of a label.
type TopologySpreadConstraint struct {
	// maxSkew is the largest permitted difference between the numbers of picked members of two values.
	// Default 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	MaxSkew *int32 `json:"maxSkew,omitempty"`
	// topologyKey is the key of the label.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	TopologyKey string `json:"topologyKey"`
	// whenUnsatisfiable is DoNotSchedule or ScheduleAnyway.
	// +optional
	// +kubebuilder:default=DoNotSchedule
	WhenUnsatisfiable UnsatisfiableConstraintAction `json:"whenUnsatisfiable,omitempty"`
}

// TolerationOperator compares a toleration with the value of a taint.
//
// +kubebuilder:validation:Enum=Equal;Exists
type TolerationOperator string

// The values of TolerationOperator.
const (
	// TolerationEqual tolerates the one value.
	TolerationEqual TolerationOperator = "Equal"
	// TolerationExists tolerates every value.
	TolerationExists TolerationOperator = "Exists"
)

// Toleration permits picking members despite a taint.
//
// +kubebuilder:validation:XValidation:rule="has(self.key) && size(self.key) > 0 || self.operator == 'Exists'",message="a toleration without a key tolerates every taint: its operator must be Exists"
// +kubebuilder:validation:XValidation:rule="self.operator != 'Exists' || !has(self.value) || size(self.value) == 0",message="the operator Exists takes no value"
type Toleration struct {
	// key is the key of the taint; empty for every key.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key,omitempty"`
	// operator is Equal (one value) or Exists (every value).
	// +optional
	// +kubebuilder:default=Equal
	Operator TolerationOperator `json:"operator,omitempty"`
	// value is the value of the taint, for Equal.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Value string `json:"value,omitempty"`
	// effect is the effect of the taint; empty for every effect.
	// +optional
	// +kubebuilder:validation:Enum=NoSchedule
	Effect string `json:"effect,omitempty"`
}
