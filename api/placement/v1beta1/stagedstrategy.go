package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/muster-fleet/muster/api/limits"
)

// ClusterStagedUpdateStrategy has the stages of ClusterStagedUpdateRuns.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=clusterstagedupdatestrategies,scope=Cluster,shortName=csus,categories={fleet,fleet-placement}
type ClusterStagedUpdateStrategy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec UpdateStrategySpec `json:"spec"`
}

// ClusterStagedUpdateStrategyList is a list of ClusterStagedUpdateStrategies.
//
// +kubebuilder:object:root=true
type ClusterStagedUpdateStrategyList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterStagedUpdateStrategy `json:"items"`
}

// StagedUpdateStrategy has the stages of StagedUpdateRuns in its namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=stagedupdatestrategies,shortName=sus,categories={fleet,fleet-placement}
type StagedUpdateStrategy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec UpdateStrategySpec `json:"spec"`
}

// StagedUpdateStrategyList is a list of StagedUpdateStrategies.
//
// +kubebuilder:object:root=true
type StagedUpdateStrategyList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []StagedUpdateStrategy `json:"items"`
}

// UpdateStrategySpec is the desired state of a staged update strategy. Users write it.
type UpdateStrategySpec struct {
	// stages are the stages, in order.
	// +required
	// +kubebuilder:validation:MaxItems=31
	Stages []StageConfig `json:"stages"`
}

// StageConfig is one stage.
type StageConfig struct {
	// name is the name of the stage. It is unique in the strategy.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]+$`
	Name string `json:"name"`
	// labelSelector selects the members of the stage by label. An empty selector selects all members
	// of the placement. Without a selector, the stage has none. Each member must be in exactly one
	// stage.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
	// sortingLabelKey is the key of a label with a whole number. Members are updated in the order of
	// these numbers, the lowest first. Default: by name.
	// +optional
	SortingLabelKey *limits.Name `json:"sortingLabelKey,omitempty"`
	// maxConcurrency is the largest number or percentage of members updated at once. Percentages are
	// rounded down, but to at least one. Default 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:XIntOrString
	MaxConcurrency *intstr.IntOrString `json:"maxConcurrency,omitempty"`
	// afterStageTasks are tasks that must end before the next stage begins.
	// +optional
	// +kubebuilder:validation:MaxItems=2
	AfterStageTasks []StageTask `json:"afterStageTasks,omitempty"`
	// beforeStageTasks are tasks that must end before the stage begins.
	// +optional
	// +kubebuilder:validation:MaxItems=1
	BeforeStageTasks []StageTask `json:"beforeStageTasks,omitempty"`
}

// StageTask is a wait or an approval.
type StageTask struct {
	// type is TimedWait or Approval.
	// +required
	// +kubebuilder:validation:Enum=TimedWait;Approval
	Type string `json:"type"`
	// waitTime is the length of a TimedWait, such as 1h. The wait starts after the update of the last
	// member of the stage.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self == '0' || (self.matches('^[-+]?([0-9]+([.][0-9]*)?(ns|us|µs|ms|s|m|h))+$') && duration(self) <= duration('2562047h'))",message="waitTime must be 0 or a Go duration such as 240h or 90m, at most 2562047h; the units are ns, us, µs, ms, s, m and h, there is none for days"
	WaitTime *metav1.Duration `json:"waitTime,omitempty"`
}
