package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/api/limits"
)

// ClusterRegistrationToken lets clusters register in its namespace, the workspace. The hub answers it with a
// Secret of the same name whose key `values` is a values.yaml for the fleet-agent chart.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=clusterregistrationtokens
// +kubebuilder:printcolumn:name="Secret-Name",type=string,JSONPath=`.status.secretName`
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.status.expires`
// +kubebuilder:printcolumn:name="Registrations",type=string,JSONPath=`.status.used`
// +kubebuilder:printcolumn:name="Last-Used",type=date,JSONPath=`.status.lastUsed`
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
//
// +kubebuilder:validation:XValidation:rule="(has(self.approval) && self.approval == 'CEL') == (has(self.approvalExpression) && size(self.approvalExpression) > 0)",message="approval CEL and approvalExpression go together: set both or neither"
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
	// Labels are put on every Cluster that registers with this token, over what it has under these keys, and taken off again when the Cluster
	// registers with a token that does not have them. No request of this workspace may bring a label under one of these keys, whichever token
	// it is made with. Keys of the fleet's own, such as fleet.cattle.io/..., are refused; keys that begin with stamped.muster/ can only be set here,
	// or by whoever may edit Clusters. None by default. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(key, size(key) <= 317)",message="a key has more than 317 characters"
	Labels map[string]limits.Name `json:"labels,omitempty"`
	// AllowedLabelKeys are the keys of the labels that a request with this token may bring: whole keys, or all of a prefix as in
	// `example.com/*`. Empty means any but those that only admins may set. A Muster addition.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=317
	AllowedLabelKeys []string `json:"allowedLabelKeys,omitempty"`
	// Description says for people what the token is for. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Description string `json:"description,omitempty"`
	// ClusterName is the only Cluster that registers with this token. If the workspace has none of this name, the request creates it; else its
	// spec.clientID has to be that of the request. Empty means any Cluster. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	ClusterName string `json:"clusterName,omitempty"`
	// ClientID is the only client ID that registers with this token. Empty means any. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	ClientID string `json:"clientID,omitempty"`
	// MaxRegistrations is how many different Clusters register with this token at most; a Cluster may register again and again. Absent means any
	// number. A Muster addition.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MaxRegistrations *int32 `json:"maxRegistrations,omitempty"`
	// Approval says whether a request with this token is granted by itself (Automatic, the default), waits until somebody who has the verb
	// approve on clusterregistrations annotates the request with muster/approved=true (Manual), or is granted by itself if approvalExpression is true
	// of it and waits else (CEL). A Muster addition.
	// +optional
	// +kubebuilder:validation:Enum=Automatic;Manual;CEL
	Approval TokenApproval `json:"approval,omitempty"`
	// ApprovalExpression is a CEL expression that returns a bool, for approval CEL. Its variables: labels (a map; those that the Cluster has when the
	// request is granted), clientID, key (the fingerprint of the agent's key, "" if it has none), requester (the name of the user that made the
	// request, "" if that is not known for certain) and native (whether Muster's agent asks). Empty by default. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	ApprovalExpression string `json:"approvalExpression,omitempty"`
}

// TokenApproval says who grants the requests with a token.
type TokenApproval string

// The approvals of a token.
const (
	// ApprovalAutomatic: the hub does.
	ApprovalAutomatic TokenApproval = "Automatic"
	// ApprovalManual: somebody with the right to approve does.
	ApprovalManual TokenApproval = "Manual"
	// ApprovalCEL: the hub does if spec.approvalExpression is true, else somebody with the right to approve.
	ApprovalCEL TokenApproval = "CEL"
)

// Limited returns whether the token registers less than any cluster without being asked.
func (s ClusterRegistrationTokenSpec) Limited() bool {
	return s.ClusterName != "" || s.ClientID != "" || s.MaxRegistrations != nil || s.Approval == ApprovalManual || s.Approval == ApprovalCEL
}

// ClusterRegistrationTokenStatus is what the hub answers.
type ClusterRegistrationTokenStatus struct {
	// Expires is the time from which on the token no longer registers clusters; absent if it never expires. Where the API server of the hub grants
	// credentials of less life, it is when the values.yaml in the Secret stops working, which the hub renews until the token ends.
	// +optional
	Expires *metav1.Time `json:"expires,omitempty"`
	// SecretName is the Secret with the values.yaml, always named like the token; empty until it exists.
	// +optional
	SecretName string `json:"secretName,omitempty"`
	// Registrations counts the clusters whose current registration was made with this token. A Muster addition.
	// +optional
	Registrations int32 `json:"registrations,omitempty"`
	// Used is the same for people; with spec.maxRegistrations it is how many of them are taken, as in `2/5`. A Muster addition.
	// +optional
	Used string `json:"used,omitempty"`
	// LastUsed is when the newest request was made that this token has registered. A Muster addition.
	// +optional
	LastUsed *metav1.Time `json:"lastUsed,omitempty"`
	// Clusters are those that have taken one of spec.maxRegistrations, which stays taken; absent without that. A Muster addition.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	Clusters []string `json:"clusters,omitempty"`
	// Conditions has Ready: whether the values Secret is there and the token can be used, and if not, why; and TTLGranted, which is False where the
	// API server of the hub grants credentials of less life than spec.ttl, and else absent. A Muster addition.
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
