package v1beta1

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// RolloutStrategyType is how a change reaches the members.
//
// +kubebuilder:validation:Enum=RollingUpdate;External
type RolloutStrategyType string

// The ways of rolling out.
const (
	// RolloutRollingUpdate changes a few members at a time.
	RolloutRollingUpdate RolloutStrategyType = "RollingUpdate"
	// RolloutExternal has staged update runs bring changes to members; without one they keep what they
	// have.
	RolloutExternal RolloutStrategyType = "External"
)

// RolloutStrategy is how what changes is brought to the members.
type RolloutStrategy struct {
	// Type is RollingUpdate or External.
	// +optional
	// +kubebuilder:default=RollingUpdate
	Type RolloutStrategyType `json:"type,omitempty"`
	// RollingUpdate bounds how much changes at a time.
	// +optional
	RollingUpdate *RollingUpdateConfig `json:"rollingUpdate,omitempty"`
	// ApplyStrategy is how the members' agents apply.
	// +optional
	ApplyStrategy *ApplyStrategy `json:"applyStrategy,omitempty"`
	// DeleteStrategy is what becomes of what was placed when the placement goes, or a member
	// is no longer picked.
	// +optional
	DeleteStrategy *DeleteStrategy `json:"deleteStrategy,omitempty"`
	// ReportBackStrategy is accepted; Muster does not copy status back, and says so unless
	// the type is Disabled.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	ReportBackStrategy *runtime.RawExtension `json:"reportBackStrategy,omitempty"`
}

// RollingUpdateConfig bounds how much changes at a time.
type RollingUpdateConfig struct {
	// MaxUnavailable is how many of the picked members, or what part of them, may be without
	// available resources because of a change. Parts are rounded up. Zero counts as one, because a
	// change is made in place.
	// +optional
	// +kubebuilder:default="25%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^((100|[0-9]{1,2})%|[0-9]+)$`
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// MaxSurge is how many members more than asked for, or what part of them, may hold resources while
	// members replace each other. Parts are rounded up.
	// +optional
	// +kubebuilder:default="25%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^((100|[0-9]{1,2})%|[0-9]+)$`
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
	// UnavailablePeriodSeconds is how long after being applied resources count as available whose
	// availability cannot be observed.
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=0
	UnavailablePeriodSeconds *int32 `json:"unavailablePeriodSeconds,omitempty"`
}

// ApplyStrategyType is how an object is applied.
//
// +kubebuilder:validation:Enum=ClientSideApply;ServerSideApply;ReportDiff
type ApplyStrategyType string

// The ways of applying.
const (
	// ApplyClientSide is a three-way merge with what was applied last.
	ApplyClientSide ApplyStrategyType = "ClientSideApply"
	// ApplyServerSide leaves the merge to the member's API server.
	ApplyServerSide ApplyStrategyType = "ServerSideApply"
	// ApplyReportDiff applies nothing and reports what differs.
	ApplyReportDiff ApplyStrategyType = "ReportDiff"
)

// WhenToApply says what becomes of changes that somebody else makes on the member.
//
// +kubebuilder:validation:Enum=Always;IfNotDrifted
type WhenToApply string

// When an object is applied again.
const (
	// ApplyAlways sets the object right.
	ApplyAlways WhenToApply = "Always"
	// ApplyIfNotDrifted leaves an object alone that somebody else changed, and reports it.
	ApplyIfNotDrifted WhenToApply = "IfNotDrifted"
)

// WhenToTakeOver says what becomes of an object that was there before.
//
// +kubebuilder:validation:Enum=Always;IfNoDiff;Never
type WhenToTakeOver string

// When an object that was there before is taken over.
const (
	// TakeOverAlways takes it over.
	TakeOverAlways WhenToTakeOver = "Always"
	// TakeOverIfNoDiff takes it over if it is as the manifest says.
	TakeOverIfNoDiff WhenToTakeOver = "IfNoDiff"
	// TakeOverNever reports it as failed.
	TakeOverNever WhenToTakeOver = "Never"
)

// ComparisonOption says what counts as a difference.
//
// +kubebuilder:validation:Enum=PartialComparison;FullComparison
type ComparisonOption string

// What counts as a difference.
const (
	// ComparePartially looks at the fields of the manifest only.
	ComparePartially ComparisonOption = "PartialComparison"
	// CompareFully counts fields that only the object on the member has, too.
	CompareFully ComparisonOption = "FullComparison"
)

// ApplyStrategy is how a member's agent applies.
type ApplyStrategy struct {
	// Type: default ServerSideApply by Muster's agent, ClientSideApply by KubeFleet's.
	// +optional
	Type ApplyStrategyType `json:"type,omitempty"`
	// ComparisonOption is what counts as a difference for whenToApply and whenToTakeOver, and what
	// ReportDiff reports.
	// +optional
	// +kubebuilder:default=PartialComparison
	ComparisonOption ComparisonOption `json:"comparisonOption,omitempty"`
	// WhenToApply is what becomes of changes that somebody else makes on the member.
	// +optional
	// +kubebuilder:default=Always
	WhenToApply WhenToApply `json:"whenToApply,omitempty"`
	// WhenToTakeOver is what becomes of an object that was there before.
	// +optional
	// +kubebuilder:default=Always
	WhenToTakeOver WhenToTakeOver `json:"whenToTakeOver,omitempty"`
	// AllowCoOwnership lets an object have owners besides the placement's. Default: false.
	// +optional
	AllowCoOwnership bool `json:"allowCoOwnership,omitempty"`
	// ServerSideApplyConfig is for ServerSideApply only.
	// +optional
	ServerSideApplyConfig *ServerSideApplyConfig `json:"serverSideApplyConfig,omitempty"`
}

// ServerSideApplyConfig is for ServerSideApply only.
type ServerSideApplyConfig struct {
	// Force takes fields from other managers. Default: false, and such a conflict is reported.
	// +optional
	ForceConflicts bool `json:"force,omitempty"`
}

// PropagationPolicy is what becomes of what was placed.
//
// +kubebuilder:validation:Enum=Delete;Abandon
type PropagationPolicy string

// What becomes of what was placed.
const (
	// PropagationDelete removes it.
	PropagationDelete PropagationPolicy = "Delete"
	// PropagationAbandon leaves it on the member.
	PropagationAbandon PropagationPolicy = "Abandon"
)

// DeleteStrategy is what becomes of what was placed when the placement goes.
type DeleteStrategy struct {
	// PropagationPolicy is Delete or Abandon.
	// +optional
	// +kubebuilder:default=Delete
	PropagationPolicy PropagationPolicy `json:"propagationPolicy,omitempty"`
}
