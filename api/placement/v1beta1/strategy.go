package v1beta1

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// RolloutStrategyType is the way of rolling out a change.
//
// +kubebuilder:validation:Enum=RollingUpdate;External
type RolloutStrategyType string

// The ways of rolling out.
const (
	// RolloutRollingUpdate changes a few members at a time.
	RolloutRollingUpdate RolloutStrategyType = "RollingUpdate"
	// RolloutExternal leaves changes to staged update runs. Without a run the members keep their
	// version.
	RolloutExternal RolloutStrategyType = "External"
)

// RolloutStrategy defines the rollout of changes to the members.
type RolloutStrategy struct {
	// type is RollingUpdate or External.
	// +optional
	// +kubebuilder:default=RollingUpdate
	Type RolloutStrategyType `json:"type,omitempty"`
	// rollingUpdate limits the number of changes at a time.
	// +optional
	RollingUpdate *RollingUpdateConfig `json:"rollingUpdate,omitempty"`
	// applyStrategy tells the agents of the members how to apply objects.
	// +optional
	ApplyStrategy *ApplyStrategy `json:"applyStrategy,omitempty"`
	// deleteStrategy defines what happens to placed resources after the placement is deleted, or a
	// member is no longer picked.
	// +optional
	DeleteStrategy *DeleteStrategy `json:"deleteStrategy,omitempty"`
	// reportBackStrategy has no effect: Muster does not copy the status of placed objects back. With a
	// type other than Disabled, the condition Supported is False.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	ReportBackStrategy *runtime.RawExtension `json:"reportBackStrategy,omitempty"`
}

// RollingUpdateConfig limits the number of changes at a time.
type RollingUpdateConfig struct {
	// maxUnavailable is the largest number or percentage of picked members without available resources
	// during a change. Percentages are rounded up. Zero counts as one, because changes are made in
	// place.
	// +optional
	// +kubebuilder:default="25%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^((100|[0-9]{1,2})%|[0-9]+)$`
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// maxSurge is the number or percentage of additional members with resources while new members
	// replace old ones. Percentages are rounded up.
	// +optional
	// +kubebuilder:default="25%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^((100|[0-9]{1,2})%|[0-9]+)$`
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
	// unavailablePeriodSeconds is a time in seconds for resources without observable availability.
	// This long after they were applied, they count as available.
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=0
	UnavailablePeriodSeconds *int32 `json:"unavailablePeriodSeconds,omitempty"`
}

// ApplyStrategyType is the way of applying an object.
//
// +kubebuilder:validation:Enum=ClientSideApply;ServerSideApply;ReportDiff
type ApplyStrategyType string

// The ways of applying.
const (
	// ApplyClientSide is a three-way merge with the last applied manifest.
	ApplyClientSide ApplyStrategyType = "ClientSideApply"
	// ApplyServerSide leaves the merge to the member's API server.
	ApplyServerSide ApplyStrategyType = "ServerSideApply"
	// ApplyReportDiff applies nothing and reports differences.
	ApplyReportDiff ApplyStrategyType = "ReportDiff"
)

// WhenToApply is the treatment of changes that other clients make on the member.
//
// +kubebuilder:validation:Enum=Always;IfNotDrifted
type WhenToApply string

// The values of WhenToApply.
const (
	// ApplyAlways applies the object again.
	ApplyAlways WhenToApply = "Always"
	// ApplyIfNotDrifted leaves a changed object alone, and reports it.
	ApplyIfNotDrifted WhenToApply = "IfNotDrifted"
)

// WhenToTakeOver is the treatment of an object that already exists.
//
// +kubebuilder:validation:Enum=Always;IfNoDiff;Never
type WhenToTakeOver string

// The values of WhenToTakeOver.
const (
	// TakeOverAlways takes over the object.
	TakeOverAlways WhenToTakeOver = "Always"
	// TakeOverIfNoDiff takes over the object if it equals the manifest.
	TakeOverIfNoDiff WhenToTakeOver = "IfNoDiff"
	// TakeOverNever reports a failure.
	TakeOverNever WhenToTakeOver = "Never"
)

// ComparisonOption decides what counts as a difference.
//
// +kubebuilder:validation:Enum=PartialComparison;FullComparison
type ComparisonOption string

// The values of ComparisonOption.
const (
	// ComparePartially compares only the fields of the manifest.
	ComparePartially ComparisonOption = "PartialComparison"
	// CompareFully also counts fields that exist only in the object on the member.
	CompareFully ComparisonOption = "FullComparison"
)

// ApplyStrategy defines how the agent of a member applies objects.
type ApplyStrategy struct {
	// type is the way of applying objects. Default: ServerSideApply for Muster's agent,
	// ClientSideApply for KubeFleet's.
	// +optional
	Type ApplyStrategyType `json:"type,omitempty"`
	// comparisonOption decides what counts as a difference, for whenToApply, whenToTakeOver and the
	// type ReportDiff.
	// +optional
	// +kubebuilder:default=PartialComparison
	ComparisonOption ComparisonOption `json:"comparisonOption,omitempty"`
	// whenToApply is the treatment of changes that other clients make on the member.
	// +optional
	// +kubebuilder:default=Always
	WhenToApply WhenToApply `json:"whenToApply,omitempty"`
	// whenToTakeOver is the treatment of an object that already exists on the member.
	// +optional
	// +kubebuilder:default=Always
	WhenToTakeOver WhenToTakeOver `json:"whenToTakeOver,omitempty"`
	// allowCoOwnership permits other owners of a placed object. Default: false.
	// +optional
	AllowCoOwnership bool `json:"allowCoOwnership,omitempty"`
	// serverSideApplyConfig has options for the type ServerSideApply.
	// +optional
	ServerSideApplyConfig *ServerSideApplyConfig `json:"serverSideApplyConfig,omitempty"`
	// ignoreDifferences are fields that other clients may change on the member. The agent creates
	// objects with the values of the manifest. Later it neither corrects nor reports these fields.
	// Agents of earlier versions and KubeFleet's agent apply the fields as before.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	IgnoreDifferences []IgnoredFields `json:"ignoreDifferences,omitempty"`
}

// IgnoredFields are fields of some placed objects.
type IgnoredFields struct {
	// group is the API group of the objects; empty for the core group.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`
	// kind is the kind of the objects.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// namespace is the namespace of the objects; empty for all.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// name is the name of the object; empty for all of the kind.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// jsonPointers are the fields as JSON pointers (RFC 6901), such as /spec/replicas. A number is an
	// index in the list of the manifest; the entry at that index needs a name.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:Pattern=`^/[^/]`
	// +listType=atomic
	JSONPointers []string `json:"jsonPointers"`
}

// Selects reports whether the rule is for an object.
func (i IgnoredFields) Selects(group, kind, namespace, name string) bool {
	return i.Group == group && i.Kind == kind && (i.Namespace == "" || i.Namespace == namespace) && (i.Name == "" || i.Name == name)
}

// ServerSideApplyConfig has options for the type ServerSideApply.
type ServerSideApplyConfig struct {
	// force takes over fields from other managers. Default: false, and conflicts are reported.
	// +optional
	ForceConflicts bool `json:"force,omitempty"`
}

// PropagationPolicy is the treatment of placed resources at the removal.
//
// +kubebuilder:validation:Enum=Delete;Abandon
type PropagationPolicy string

// The values of PropagationPolicy.
const (
	// PropagationDelete removes the resources.
	PropagationDelete PropagationPolicy = "Delete"
	// PropagationAbandon leaves the resources on the member.
	PropagationAbandon PropagationPolicy = "Abandon"
)

// DeleteStrategy defines the removal of placed resources.
type DeleteStrategy struct {
	// propagationPolicy is Delete or Abandon. Delete removes the resources from the member, and
	// Abandon leaves them there.
	// +optional
	// +kubebuilder:default=Delete
	PropagationPolicy PropagationPolicy `json:"propagationPolicy,omitempty"`
}
