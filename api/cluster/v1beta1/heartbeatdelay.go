package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DelayHours is the number of hours in a HeartbeatDelay.
const DelayHours = 24

// HeartbeatDelay has the longest delay of a member's heartbeats in each of the last hours. The
// delay is the time from the end of the heartbeat period until the hub has seen the heartbeat.
// Agents vary the period by 5 percent. A heartbeat after a loss has no delay; the history has the
// loss.
type HeartbeatDelay struct {
	// hour is the begin of the newest hour with a measured heartbeat.
	// +required
	Hour metav1.Time `json:"hour"`
	// seconds lists the longest delay in each hour, in seconds: first the newest hour, then the hours
	// before it. An hour without a measured heartbeat has -1: no hub watched, or the member was lost.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=24
	// +kubebuilder:validation:items:Minimum=-1
	// +kubebuilder:validation:items:Maximum=65534
	Seconds []int32 `json:"seconds,omitempty"`
}
