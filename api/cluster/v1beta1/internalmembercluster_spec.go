package v1beta1

// HealthCheck sets how many results in a row change the reported health of a member.
type HealthCheck struct {
	// FailureThreshold is the number of failures in a row until the member is unhealthy.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=60
	FailureThreshold int32 `json:"failureThreshold,omitempty"`
	// SuccessThreshold is the number of successes in a row until the member is healthy again.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=60
	SuccessThreshold int32 `json:"successThreshold,omitempty"`
}

// LeavePolicy decides about the objects placed on a leaving member.
//
// +kubebuilder:validation:Enum=Delete;Orphan
type LeavePolicy string

// The policies.
const (
	// LeaveDelete removes them.
	LeaveDelete LeavePolicy = "Delete"
	// LeaveOrphan leaves them unchanged.
	LeaveOrphan LeavePolicy = "Orphan"
)
