package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/api/limits"
)

// GitRepoRestriction restricts the GitRepos of its namespace. It is the older form of a Policy. Of
// several in a namespace, the lists are united.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=gitreporestrictions
// +kubebuilder:printcolumn:name="Default-ServiceAccount",type=string,JSONPath=`.defaultServiceAccount`
// +kubebuilder:printcolumn:name="Allowed-ServiceAccounts",type=string,JSONPath=`.allowedServiceAccounts`
type GitRepoRestriction struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// DefaultServiceAccount is the account of a GitRepo that names none.
	// +optional
	// +nullable
	DefaultServiceAccount limits.Name `json:"defaultServiceAccount,omitempty"`
	// AllowedServiceAccounts are the accounts that a GitRepo may name; any if there are none.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	AllowedServiceAccounts []limits.Name `json:"allowedServiceAccounts,omitempty"`
	// AllowedRepoPatterns are regular expressions. One must match a part of the address of a
	// repository; any address is allowed if there are none.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	AllowedRepoPatterns []limits.Line `json:"allowedRepoPatterns,omitempty"`
	// DefaultClientSecretName is the Secret of a GitRepo that names none.
	// +optional
	// +nullable
	DefaultClientSecretName limits.Name `json:"defaultClientSecretName,omitempty"`
	// AllowedClientSecretNames are the Secrets that a GitRepo may name; any if there are none.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	AllowedClientSecretNames []limits.Name `json:"allowedClientSecretNames,omitempty"`
	// AllowedTargetNamespaces are the values allowed as spec.targetNamespace of a GitRepo. A GitRepo
	// must then have one.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	AllowedTargetNamespaces []limits.Name `json:"allowedTargetNamespaces,omitempty"`
	// AllowedTargetNamespaceSelector restricts the namespaces for deployments downstream.
	// +optional
	// +nullable
	AllowedTargetNamespaceSelector *metav1.LabelSelector `json:"allowedTargetNamespaceSelector,omitempty"`
	// Status has the conditions that the hub writes.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Status UnsupportedStatus `json:"status,omitempty"`
}

// GitRepoRestrictionList is a list of GitRepoRestrictions.
//
// +kubebuilder:object:root=true
type GitRepoRestrictionList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GitRepoRestriction `json:"items"`
}
