package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/api/limits"
)

// Schedule defines windows for changes to Clusters of its namespace. Outside the windows, the agent
// of a selected Cluster deploys nothing and corrects nothing.
//
// If several Schedules select a Cluster, changes happen while any of their windows is open. Without
// a Schedule, they happen at any time. An invalid Schedule opens no window.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=schedules
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=`.spec.schedule`
// +kubebuilder:printcolumn:name="Duration",type=string,JSONPath=`.spec.duration`
// +kubebuilder:printcolumn:name="Active",type=string,JSONPath=`.status.active`
// +kubebuilder:printcolumn:name="NextStart",type=string,JSONPath=`.status.nextStartTime`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type Schedule struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the Schedule.
	// +optional
	Spec ScheduleSpec `json:"spec,omitempty"`
	// status is the observed state of the Schedule. The hub writes it.
	// +optional
	Status ScheduleStatus `json:"status,omitempty"`
}

// ScheduleSpec is the desired state of a Schedule: its windows, and its Clusters.
type ScheduleSpec struct {
	// schedule is a cron expression for the start of each window. Its fields are second, minute, hour,
	// day of month, month, day of week. As in Rancher Fleet, 1 is Sunday.
	// +optional
	// +nullable
	Schedule limits.Line `json:"schedule,omitempty"`
	// duration is the length of each window, such as `2h30m`. At least a second.
	// +optional
	// +nullable
	Duration limits.Name `json:"duration,omitempty"`
	// location is the IANA time zone of the schedule, such as `Europe/Berlin`. Default UTC.
	// +optional
	// +nullable
	Location limits.Name `json:"location,omitempty"`
	// targets select the Clusters.
	// +optional
	// +nullable
	Targets ScheduleTargets `json:"targets,omitempty"`
}

// ScheduleTargets select the Clusters of a Schedule.
type ScheduleTargets struct {
	// clusters select Clusters of the Schedule's namespace. A Cluster must match one of them.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	Clusters []ScheduleTarget `json:"clusters,omitempty"`
}

// ScheduleTarget selects Clusters. A Cluster must match each of the selectors that is set. Without
// selectors it selects none.
type ScheduleTarget struct {
	// name is the name of the target, for readers.
	// +optional
	// +nullable
	Name limits.Name `json:"name,omitempty"`
	// clusterName has the same meaning as in a target of a Bundle.
	// +optional
	// +nullable
	ClusterName limits.Name `json:"clusterName,omitempty"`
	// clusterSelector has the same meaning as in a target of a Bundle.
	// +optional
	// +nullable
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
	// clusterGroup has the same meaning as in a target of a Bundle.
	// +optional
	// +nullable
	ClusterGroup limits.Name `json:"clusterGroup,omitempty"`
	// clusterGroupSelector has the same meaning as in a target of a Bundle.
	// +optional
	// +nullable
	ClusterGroupSelector *metav1.LabelSelector `json:"clusterGroupSelector,omitempty"`
}

// ScheduleStatus is the observed state of a Schedule. The hub writes it.
type ScheduleStatus struct {
	// conditions: Ready. It is False if a field of the spec is invalid. Its message names the field. A
	// Muster addition.
	// +optional
	// +nullable
	Conditions []Condition `json:"conditions,omitempty"`
	// active is true while a window is open.
	// +optional
	Active bool `json:"active,omitempty"`
	// nextStartTime is the start of the next window. Null without a next window.
	// +optional
	// +nullable
	NextStartTime *metav1.Time `json:"nextStartTime,omitempty"`
}

// ScheduleList is a list of Schedules.
//
// +kubebuilder:object:root=true
type ScheduleList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Schedule `json:"items"`
}
