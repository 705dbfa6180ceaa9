package v1beta1

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// RolloutStrategyType is the way a change reaches the members.
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
	// Type is RollingUpdate or External.
	// +optional
	// +kubebuilder:default=RollingUpdate
	Type RolloutStrategyType `json:"type,omitempty"`
	// RollingUpdate limits simultaneous changes.
	// +optional
	RollingUpdate *RollingUpdateConfig `json:"rollingUpdate,omitempty"`
	// ApplyStrategy is for the members' agents.
	// +optional
	ApplyStrategy *ApplyStrategy `json:"applyStrategy,omitempty"`
	// DeleteStrategy defines the removal of placed resources after the placement is deleted, or a
	// member is no longer picked.
	// +optional
	DeleteStrategy *DeleteStrategy `json:"deleteStrategy,omitempty"`
	// ReportBackStrategy is accepted. Muster does not copy status back; the status reports that unless
	// the type is Disabled.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	ReportBackStrategy *runtime.RawExtension `json:"reportBackStrategy,omitempty"`
}

// RollingUpdateConfig limits simultaneous changes.
type RollingUpdateConfig struct {
	// MaxUnavailable is the maximum number or percentage of picked members that a change may leave
	// without available resources. Percentages are rounded up. Zero counts as one, because changes are
	// made in place.
	// +optional
	// +kubebuilder:default="25%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^((100|[0-9]{1,2})%|[0-9]+)$`
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// MaxSurge is the number or percentage of additional members that may hold resources while members
	// replace each other. Percentages are rounded up.
	// +optional
	// +kubebuilder:default="25%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^((100|[0-9]{1,2})%|[0-9]+)$`
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
	// UnavailablePeriodSeconds is the wait, in seconds, after applying resources without observable
	// availability. After it they count as available.
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=0
	UnavailablePeriodSeconds *int32 `json:"unavailablePeriodSeconds,omitempty"`
}

// ApplyStrategyType is the way an object is applied.
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

// WhenToApply is the treatment of other changes on the member.
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

// ComparisonOption defines differences.
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

// ApplyStrategy defines the application of objects by a member's agent.
type ApplyStrategy struct {
	// Type: default ServerSideApply by Muster's agent, ClientSideApply by KubeFleet's.
	// +optional
	Type ApplyStrategyType `json:"type,omitempty"`
	// ComparisonOption defines differences for whenToApply, for whenToTakeOver, and for the reports of
	// ReportDiff.
	// +optional
	// +kubebuilder:default=PartialComparison
	ComparisonOption ComparisonOption `json:"comparisonOption,omitempty"`
	// WhenToApply is the treatment of changes that others make on the member.
	// +optional
	// +kubebuilder:default=Always
	WhenToApply WhenToApply `json:"whenToApply,omitempty"`
	// WhenToTakeOver is the treatment of an object that already exists on the member.
	// +optional
	// +kubebuilder:default=Always
	WhenToTakeOver WhenToTakeOver `json:"whenToTakeOver,omitempty"`
	// AllowCoOwnership permits owners of an object besides the placement. Default: false.
	// +optional
	AllowCoOwnership bool `json:"allowCoOwnership,omitempty"`
	// ServerSideApplyConfig is for ServerSideApply only.
	// +optional
	ServerSideApplyConfig *ServerSideApplyConfig `json:"serverSideApplyConfig,omitempty"`
	// IgnoreDifferences are fields that the placement leaves to others on the member. It creates
	// objects with the values of the manifest, and neither corrects nor reports these fields later.
	// Agents of earlier versions and KubeFleet's agent apply the fields as before.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	IgnoreDifferences []IgnoredFields `json:"ignoreDifferences,omitempty"`
}

// IgnoredFields are fields of some placed objects.
type IgnoredFields struct {
	// Group is the API group of the objects; empty for the core group.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`
	// Kind of the objects.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// Namespace of the objects; empty for all.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// Name of the object; empty for all of the kind.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// JSONPointers lead to the fields (RFC 6901), such as /spec/replicas. A number counts in the list
	// of the manifest, and its entry needs a name.
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

// ServerSideApplyConfig is for ServerSideApply only.
type ServerSideApplyConfig struct {
	// Force takes over fields from other managers. Default: false; conflicts are then reported.
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
	// PropagationPolicy is Delete or Abandon.
	// +optional
	// +kubebuilder:default=Delete
	PropagationPolicy PropagationPolicy `json:"propagationPolicy,omitempty"`
}
