package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/api/limits"
)

// PlacementType is how members are picked.
//
// +kubebuilder:validation:Enum=PickAll;PickN;PickFixed
type PlacementType string

// The ways of picking members.
const (
	// PickAll picks every member that qualifies.
	PickAll PlacementType = "PickAll"
	// PickN picks a number of those that qualify, the best first.
	PickN PlacementType = "PickN"
	// PickFixed picks the members that are named.
	PickFixed PlacementType = "PickFixed"
)

// PlacementPolicy says which members are picked.
//
// +kubebuilder:validation:XValidation:rule="self.placementType == oldSelf.placementType",message="placementType cannot be changed; create another placement"
// +kubebuilder:validation:XValidation:rule="self.placementType == 'PickFixed' || !has(self.clusterNames)",message="clusterNames is for PickFixed only"
// +kubebuilder:validation:XValidation:rule="self.placementType == 'PickN' ? has(self.numberOfClusters) : !has(self.numberOfClusters)",message="numberOfClusters is for PickN only, which needs it"
// +kubebuilder:validation:XValidation:rule="self.placementType == 'PickN' || !has(self.topologySpreadConstraints)",message="topologySpreadConstraints is for PickN only"
// +kubebuilder:validation:XValidation:rule="self.placementType != 'PickFixed' || !has(self.affinity) && !has(self.tolerations)",message="PickFixed takes clusterNames only"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.tolerations) || has(self.tolerations) && oldSelf.tolerations.all(o, self.tolerations.exists(t, t == o))",message="tolerations can only be added"
type PlacementPolicy struct {
	// PlacementType is PickAll, PickN or PickFixed.
	// +optional
	// +kubebuilder:default=PickAll
	PlacementType PlacementType `json:"placementType,omitempty"`
	// ClusterNames are the members that PickFixed picks: the names of MemberClusters, and
	// <workspace>/<name> of Clusters. None is nobody.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=253
	ClusterNames []string `json:"clusterNames,omitempty"`
	// NumberOfClusters is how many PickN picks.
	// +optional
	// +kubebuilder:validation:Minimum=0
	NumberOfClusters *int32 `json:"numberOfClusters,omitempty"`
	// Affinity is what a member must have, and should.
	// +optional
	Affinity *Affinity `json:"affinity,omitempty"`
	// TopologySpreadConstraints spread what PickN picks over the values of labels.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	TopologySpreadConstraints []TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
	// Tolerations let members be picked in spite of their taints.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	Tolerations []Toleration `json:"tolerations,omitempty"`
}

// Affinity is what a member must have, and should.
type Affinity struct {
	// ClusterAffinity is about the member itself.
	// +optional
	ClusterAffinity *ClusterAffinity `json:"clusterAffinity,omitempty"`
}

// ClusterAffinity is about the member itself.
type ClusterAffinity struct {
	// Required is what a member must have to be picked. A member that was picked stays so when
	// it no longer has it.
	// +optional
	Required *ClusterSelector `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`
	// Preferred is what PickN ranks members by.
	// +optional
	// +kubebuilder:validation:MaxItems=10
	Preferred []PreferredClusterSelector `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// ClusterSelector selects members.
type ClusterSelector struct {
	// ClusterSelectorTerms of which one must hold.
	// +required
	// +kubebuilder:validation:MaxItems=10
	ClusterSelectorTerms []ClusterSelectorTerm `json:"clusterSelectorTerms"`
}

// ClusterSelectorTerm holds if all that it says holds.
type ClusterSelectorTerm struct {
	// LabelSelector over the labels of the record.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
	// PropertySelector over what the member reports.
	// +optional
	PropertySelector *PropertySelector `json:"propertySelector,omitempty"`
	// PropertySorter is for preferences only.
	// +optional
	PropertySorter *PropertySorter `json:"propertySorter,omitempty"`
}

// PropertySelector holds if all its expressions hold.
type PropertySelector struct {
	// MatchExpressions that must all hold.
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
	// Name of the property: one that members report, such as kubernetes-fleet.io/node-count, or
	// resources.kubernetes-fleet.io/{total,allocatable,available}-<resource>.
	// +required
	Name limits.Name `json:"name"`
	// Operator is Gt, Ge, Eq, Ne, Lt or Le.
	// +required
	Operator PropertySelectorOperator `json:"operator"`
	// Values is the one quantity to compare with.
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1
	Values []limits.Name `json:"values"`
}

// PropertySortOrder says which end is best.
//
// +kubebuilder:validation:Enum=Ascending;Descending
type PropertySortOrder string

// The orders of sorting.
const (
	// Ascending: the least is best.
	Ascending PropertySortOrder = "Ascending"
	// Descending: the most is best.
	Descending PropertySortOrder = "Descending"
)

// PropertySorter ranks members by a property: the best gets the whole weight, the worst none, the
// others a part in proportion.
type PropertySorter struct {
	// Name of the property.
	// +required
	Name limits.Name `json:"name"`
	// SortOrder is Ascending, the least is best, or Descending, the most is best.
	// +required
	SortOrder PropertySortOrder `json:"sortOrder"`
}

// PreferredClusterSelector adds its weight to the rank of the members that it holds for.
type PreferredClusterSelector struct {
	// Weight, from -100 to 100.
	// +required
	// +kubebuilder:validation:Minimum=-100
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight"`
	// Preference is what is preferred.
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(self.propertySelector)",message="propertySelector is for required terms; prefer with propertySorter"
	Preference ClusterSelectorTerm `json:"preference"`
}

// UnsatisfiableConstraintAction says what becomes of a member that would break a spread.
//
// +kubebuilder:validation:Enum=DoNotSchedule;ScheduleAnyway
type UnsatisfiableConstraintAction string

// What becomes of a member that would break a spread.
const (
	// DoNotSchedule does not pick it.
	DoNotSchedule UnsatisfiableConstraintAction = "DoNotSchedule"
	// ScheduleAnyway picks it after others.
	ScheduleAnyway UnsatisfiableConstraintAction = "ScheduleAnyway"
)

// TopologySpreadConstraint spreads what is picked over the values of a label.
type TopologySpreadConstraint struct {
	// MaxSkew is by how much the numbers of picked members of any two values may differ. Default 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	MaxSkew *int32 `json:"maxSkew,omitempty"`
	// TopologyKey is the label.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	TopologyKey string `json:"topologyKey"`
	// WhenUnsatisfiable is DoNotSchedule or ScheduleAnyway.
	// +optional
	// +kubebuilder:default=DoNotSchedule
	WhenUnsatisfiable UnsatisfiableConstraintAction `json:"whenUnsatisfiable,omitempty"`
}

// TolerationOperator says how a toleration looks at a taint's value.
//
// +kubebuilder:validation:Enum=Equal;Exists
type TolerationOperator string

// How a toleration looks at a taint's value.
const (
	// TolerationEqual tolerates the one value.
	TolerationEqual TolerationOperator = "Equal"
	// TolerationExists tolerates every value.
	TolerationExists TolerationOperator = "Exists"
)

// Toleration lets members be picked in spite of a taint.
//
// +kubebuilder:validation:XValidation:rule="has(self.key) && size(self.key) > 0 || self.operator == 'Exists'",message="a toleration without a key tolerates every taint: its operator must be Exists"
// +kubebuilder:validation:XValidation:rule="self.operator != 'Exists' || !has(self.value) || size(self.value) == 0",message="the operator Exists takes no value"
type Toleration struct {
	// Key of the taint; empty for every key.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key,omitempty"`
	// Operator is Equal or Exists.
	// +optional
	// +kubebuilder:default=Equal
	Operator TolerationOperator `json:"operator,omitempty"`
	// Value of the taint, for Equal.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Value string `json:"value,omitempty"`
	// Effect of the taint; empty for every effect.
	// +optional
	// +kubebuilder:validation:Enum=NoSchedule
	Effect string `json:"effect,omitempty"`
}
