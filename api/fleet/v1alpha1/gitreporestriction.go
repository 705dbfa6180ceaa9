package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/api/limits"
)

// GitRepoRestriction restricts the GitRepos of its namespace. It is the older form of a Policy. If
// a namespace has several, their lists are merged.
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

	// defaultServiceAccount is the account for a GitRepo without spec.serviceAccount.
	// +optional
	// +nullable
	DefaultServiceAccount limits.Name `json:"defaultServiceAccount,omitempty"`
	// allowedServiceAccounts are the accounts that a GitRepo may name. An empty list allows all.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	AllowedServiceAccounts []limits.Name `json:"allowedServiceAccounts,omitempty"`
	// allowedRepoPatterns are regular expressions. One of them must match a part of the address of a
	// repository. An empty list allows all addresses.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	AllowedRepoPatterns []limits.Line `json:"allowedRepoPatterns,omitempty"`
	// defaultClientSecretName is the Secret for a GitRepo without spec.clientSecretName.
	// +optional
	// +nullable
	DefaultClientSecretName limits.Name `json:"defaultClientSecretName,omitempty"`
	// allowedClientSecretNames are the Secrets that a GitRepo may name. An empty list allows all.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	AllowedClientSecretNames []limits.Name `json:"allowedClientSecretNames,omitempty"`
	// allowedTargetNamespaces are the allowed values of spec.targetNamespace in a GitRepo. With a
	// list, a GitRepo must set the field.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	AllowedTargetNamespaces []limits.Name `json:"allowedTargetNamespaces,omitempty"`
	// allowedTargetNamespaceSelector restricts the target namespaces downstream by their labels.
	// +optional
	// +nullable
	AllowedTargetNamespaceSelector *metav1.LabelSelector `json:"allowedTargetNamespaceSelector,omitempty"`
	// status is the observed state of the restriction. The hub writes its conditions.
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
