package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/api/limits"
)

// Schedule opens windows for changes of Clusters in its namespace. Outside of all its windows the
// agent of a selected Cluster deploys nothing and corrects nothing.
//
// A Cluster that several Schedules select is open while one of their windows is open. A Cluster
// that none selects is always open. An invalid Schedule opens no window.
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

	// Spec is the desired state.
	// +optional
	Spec ScheduleSpec `json:"spec,omitempty"`
	// Status is set by the hub.
	// +optional
	Status ScheduleStatus `json:"status,omitempty"`
}

// ScheduleSpec are the windows of a Schedule, and its Clusters.
type ScheduleSpec struct {
	// Schedule is a cron expression for the starts of the windows: second, minute, hour, day of month,
	// month, day of week. Days of the week count from 1 for Sunday, as in Rancher Fleet.
	// +optional
	// +nullable
	Schedule limits.Line `json:"schedule,omitempty"`
	// Duration of each window, such as `2h30m`; at least a second.
	// +optional
	// +nullable
	Duration limits.Name `json:"duration,omitempty"`
	// Location is the IANA time zone of the schedule, such as `Europe/Berlin`. Default UTC.
	// +optional
	// +nullable
	Location limits.Name `json:"location,omitempty"`
	// Targets select the Clusters.
	// +optional
	// +nullable
	Targets ScheduleTargets `json:"targets,omitempty"`
}

// ScheduleTargets select the Clusters of a Schedule.
type ScheduleTargets struct {
	// Clusters select Clusters of the Schedule's namespace. One match is enough.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	Clusters []ScheduleTarget `json:"clusters,omitempty"`
}

// ScheduleTarget selects Clusters that meet all its criteria. Without any it selects none.
type ScheduleTarget struct {
	// Name of the target, for readers.
	// +optional
	// +nullable
	Name limits.Name `json:"name,omitempty"`
	// ClusterName as in a target of a Bundle.
	// +optional
	// +nullable
	ClusterName limits.Name `json:"clusterName,omitempty"`
	// ClusterSelector as in a target of a Bundle.
	// +optional
	// +nullable
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
	// ClusterGroup as in a target of a Bundle.
	// +optional
	// +nullable
	ClusterGroup limits.Name `json:"clusterGroup,omitempty"`
	// ClusterGroupSelector as in a target of a Bundle.
	// +optional
	// +nullable
	ClusterGroupSelector *metav1.LabelSelector `json:"clusterGroupSelector,omitempty"`
}

// ScheduleStatus is the status of a Schedule, written by the hub.
type ScheduleStatus struct {
	// Conditions: Ready, which is False if a field of the spec is invalid. Its message names the
	// field. A Muster addition.
	// +optional
	// +nullable
	Conditions []Condition `json:"conditions,omitempty"`
	// Active is true while a window is open.
	// +optional
	Active bool `json:"active,omitempty"`
	// NextStartTime is the start of the next window; null if there is none.
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
