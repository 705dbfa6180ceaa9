package v1alpha1

import corev1 "k8s.io/api/core/v1"

// Condition is the condition of the fleet.cattle.io group. Unlike metav1.Condition all of its
// fields are strings, which is what upstream clients expect.
type Condition struct {
	// Type of the condition in CamelCase.
	// +required
	Type string `json:"type"`
	// Status is True, False or Unknown.
	// +required
	Status corev1.ConditionStatus `json:"status"`
	// LastUpdateTime is the RFC 3339 time at which any field changed.
	// +optional
	LastUpdateTime string `json:"lastUpdateTime,omitempty"`
	// LastTransitionTime is the RFC 3339 time at which Status changed.
	// +optional
	LastTransitionTime string `json:"lastTransitionTime,omitempty"`
	// Reason is a stable CamelCase word for Status.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message says in a sentence what is so and, if something is wrong, what to do.
	// +optional
	Message string `json:"message,omitempty"`
}
