package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/api/limits"
)

// ClusterRegistrationToken lets clusters register in its namespace, the workspace. The hub creates
// a Secret of the same name. Its key `values` has a values.yaml for the chart fleet-agent.
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

// ClusterRegistrationTokenSpec is the desired state of a ClusterRegistrationToken. Users write it.
//
// +kubebuilder:validation:XValidation:rule="(has(self.approval) && self.approval == 'CEL') == (has(self.approvalExpression) && size(self.approvalExpression) > 0)",message="approval CEL and approvalExpression go together: set both or neither"
type ClusterRegistrationTokenSpec struct {
	// ttl is the lifetime of the token, as a Go duration string such as `240h`. The units are `ns`,
	// `us`, `µs`, `ms`, `s`, `m` and `h`. With null or a value <= 0 the token never expires.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self == '0' || (self.matches('^[-+]?([0-9]+([.][0-9]*)?(ns|us|µs|ms|s|m|h))+$') && duration(self) <= duration('2562047h'))",message="ttl must be 0 or a Go duration such as 240h or 90m, at most 2562047h; the units are ns, us, µs, ms, s, m and h, there is none for days"
	TTL *metav1.Duration `json:"ttl,omitempty"`
	// labels are set on every Cluster that registers with this token, and replace its own labels under
	// these keys. The hub removes them when the Cluster registers with a token without them. No
	// request of this workspace may bring a label under one of these keys, with any token. The hub
	// refuses the fleet's own keys, such as fleet.cattle.io/... Keys with the prefix stamped.muster/
	// can only be set here, or by users with the right to edit Clusters. None by default. A Muster
	// addition.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(key, size(key) <= 317)",message="a key has more than 317 characters"
	Labels map[string]limits.Name `json:"labels,omitempty"`
	// allowedLabelKeys lists the label keys that a request with this token may bring: whole keys, or a
	// prefix as in `example.com/*`. An empty list permits all keys but the ones reserved for
	// administrators. A Muster addition.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=317
	AllowedLabelKeys []string `json:"allowedLabelKeys,omitempty"`
	// description explains the purpose of the token to readers. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Description string `json:"description,omitempty"`
	// clusterName is the only Cluster that registers with this token. If the workspace has none of
	// this name, the request creates it; else its spec.clientID must equal the request's. Empty
	// permits any Cluster. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	ClusterName string `json:"clusterName,omitempty"`
	// clientID is the only client ID that registers with this token. Empty permits any. A Muster
	// addition.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	ClientID string `json:"clientID,omitempty"`
	// maxRegistrations is the maximum number of different Clusters that register with this token; a
	// Cluster may register again and again. Absent permits any number. A Muster addition.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MaxRegistrations *int32 `json:"maxRegistrations,omitempty"`
	// approval is the way of granting a request with this token. With Automatic, the default, the hub
	// grants it. With Manual it waits until a user with the verb approve on clusterregistrations
	// annotates it with muster/approved=true. With CEL the hub grants it if approvalExpression is true
	// for it; else it waits. A Muster addition.
	// +optional
	// +kubebuilder:validation:Enum=Automatic;Manual;CEL
	Approval TokenApproval `json:"approval,omitempty"`
	// approvalExpression is a CEL expression that returns a bool, for approval CEL. Its variable
	// labels is a map of the Cluster's labels after a grant. clientID is the request's. key is the
	// fingerprint of the agent's key, "" if it has none. requester is the name of the user who created
	// the request, "" if that is not certain. native is true for Muster's agent. Empty by default. A
	// Muster addition.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	ApprovalExpression string `json:"approvalExpression,omitempty"`
	// initGates are the spec.initGates of each Cluster that a registration with this token creates. A
	// Cluster that exists keeps its own. None by default. A Muster addition.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	InitGates []InitGate `json:"initGates,omitempty"`
}

// TokenApproval decides how requests with a token are granted.
type TokenApproval string

// The approvals of a token.
const (
	// ApprovalAutomatic: the hub grants them.
	ApprovalAutomatic TokenApproval = "Automatic"
	// ApprovalManual: a user with the right to approve grants them.
	ApprovalManual TokenApproval = "Manual"
	// ApprovalCEL: the hub grants them if spec.approvalExpression is true, else a user with the right
	// to approve.
	ApprovalCEL TokenApproval = "CEL"
)

// Limited reports whether the token does not register just any cluster automatically.
func (s ClusterRegistrationTokenSpec) Limited() bool {
	return s.ClusterName != "" || s.ClientID != "" || s.MaxRegistrations != nil || s.Approval == ApprovalManual || s.Approval == ApprovalCEL
}

// ClusterRegistrationTokenStatus is the observed state of a ClusterRegistrationToken. The hub
// writes it.
type ClusterRegistrationTokenStatus struct {
	// expires is the time when the token stops registering clusters. Absent if it never expires. If
	// the hub's API server grants shorter credentials, expires is the time when the values.yaml in the
	// Secret stops working. The hub renews the values.yaml until the token expires.
	// +optional
	Expires *metav1.Time `json:"expires,omitempty"`
	// secretName is the name of the Secret with the values.yaml, the same as the token's. Empty until
	// the Secret exists.
	// +optional
	SecretName string `json:"secretName,omitempty"`
	// registrations is the number of clusters whose current registration used this token. A Muster
	// addition.
	// +optional
	Registrations int32 `json:"registrations,omitempty"`
	// used shows registrations as text. With spec.maxRegistrations it shows the used part of the
	// maximum, as in `2/5`. A Muster addition.
	// +optional
	Used string `json:"used,omitempty"`
	// lastUsed is the creation time of the newest granted request with this token. A Muster addition.
	// +optional
	LastUsed *metav1.Time `json:"lastUsed,omitempty"`
	// clusters lists the Clusters that have used one of spec.maxRegistrations. A used registration is
	// never returned. Absent without maxRegistrations. A Muster addition.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	Clusters []string `json:"clusters,omitempty"`
	// rotation is the last rotation of the token's credential; absent if there was none. A Muster
	// addition.
	// +optional
	Rotation *TokenRotation `json:"rotation,omitempty"`
	// conditions: Ready, TTLGranted, Rotated. Ready reports whether the Secret exists and the token
	// can be used. TTLGranted is False if the hub's API server grants shorter credentials than
	// spec.ttl, and otherwise absent. Rotated reports the last requested rotation. A Muster addition.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
}

// TokenRotation is a replacement of the credential of a token. A Muster addition.
type TokenRotation struct {
	// requested is the value of the annotation muster/rotate at the time of the replacement.
	// +kubebuilder:validation:MaxLength=256
	Requested string `json:"requested"`
	// generation counts the replacements.
	Generation int64 `json:"generation"`
	// time is the time of the replacement.
	Time metav1.Time `json:"time"`
	// previousEnds is the time when the replaced credential ends. Absent after its end.
	// +optional
	PreviousEnds *metav1.Time `json:"previousEnds,omitempty"`
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
