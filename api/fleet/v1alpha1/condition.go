package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/muster-fleet/muster/api/limits"
)

// Condition is the condition of the fleet.cattle.io group. Unlike in metav1.Condition, all of its
// fields are strings, as upstream clients expect.
type Condition struct {
	// type is the type of the condition, in CamelCase.
	// +required
	Type limits.Name `json:"type"`
	// status is True, False or Unknown.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=63
	Status corev1.ConditionStatus `json:"status"`
	// lastUpdateTime is the RFC 3339 time of the last change of any field.
	// +optional
	LastUpdateTime limits.Name `json:"lastUpdateTime,omitempty"`
	// lastTransitionTime is the RFC 3339 time of the last change of status.
	// +optional
	LastTransitionTime limits.Name `json:"lastTransitionTime,omitempty"`
	// reason is a stable CamelCase word for the cause of the status.
	// +optional
	Reason limits.Line `json:"reason,omitempty"`
	// message describes the situation in a sentence. For a problem it also gives the remedy.
	// +optional
	Message limits.Value `json:"message,omitempty"`
}
