package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterRegistrationToken lets clusters register in its namespace, the workspace. The hub answers it with a
// Secret of the same name whose key `values` is a values.yaml for the fleet-agent chart.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=clusterregistrationtokens
// +kubebuilder:printcolumn:name="Secret-Name",type=string,JSONPath=`.status.secretName`
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.status.expires`
// +kubebuilder:printcolumn:name="Registrations",type=integer,JSONPath=`.status.registrations`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterRegistrationToken struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec ClusterRegistrationTokenSpec `json:"spec,omitempty"`
	// +optional
	Status ClusterRegistrationTokenStatus `json:"status,omitempty"`
}

// ClusterRegistrationTokenSpec is what the user asks for.
type ClusterRegistrationTokenSpec struct {
	// TTL is how long the token is valid from its creation on, as a Go duration string such as `240h`
	// (units ns, us, µs, ms, s, m, h). Null or a value <= 0 means that it never expires.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self == '0' || (self.matches('^[-+]?([0-9]+([.][0-9]*)?(ns|us|µs|ms|s|m|h))+$') && duration(self) <= duration('2562047h'))",message="ttl must be 0 or a Go duration such as 240h or 90m, at most 2562047h; the units are ns, us, µs, ms, s, m and h, there is none for days"
	TTL *metav1.Duration `json:"ttl,omitempty"`
}

// ClusterRegistrationTokenStatus is what the hub answers.
type ClusterRegistrationTokenStatus struct {
	// Expires is the time from which on the token no longer registers clusters; absent if it never expires.
	// +optional
	Expires *metav1.Time `json:"expires,omitempty"`
	// SecretName is the Secret with the values.yaml, always named like the token; empty until it exists.
	// +optional
	SecretName string `json:"secretName,omitempty"`
	// Registrations counts the clusters whose current registration was made with this token. A Muster addition.
	// +optional
	Registrations int32 `json:"registrations,omitempty"`
	// Conditions has one, Ready: whether the values Secret is there, and if not, why. A Muster addition.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
}

// ClusterRegistrationTokenList is a list of ClusterRegistrationTokens.
//
// +kubebuilder:object:root=true
type ClusterRegistrationTokenList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterRegistrationToken `json:"items"`
}
