package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/api/limits"
)

// Policy restricts the Bundles of its namespace. A writer of Policies can widen it.
//
// The Policies of a namespace are united. Their lists are added. The first default by name wins,
// and a requirement of any Policy counts. A list that is empty allows nothing. A list that no
// Policy has allows all.
//
// The fields may stand in spec or at the top of the object.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=policies
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type Policy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	PolicyRules `json:",inline"`
	// Spec has the rules of the Policy. Rules at the top of the object count, too.
	// +optional
	// +nullable
	Spec *PolicyRules `json:"spec,omitempty"`
	// Status is set by the hub.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Status PolicyStatus `json:"status,omitempty"`
}

// PolicyRules are the rules of a Policy.
type PolicyRules struct {
	// RequireServiceAccount refuses a Bundle without a service account. Deployments then create no
	// namespaces, unless allowNamespaceCreation is true.
	// +optional
	RequireServiceAccount bool `json:"requireServiceAccount,omitempty"`
	// DefaultServiceAccount is the account of a Bundle that names none. It is always allowed.
	// +optional
	// +nullable
	DefaultServiceAccount limits.Name `json:"defaultServiceAccount,omitempty"`
	// AllowedServiceAccounts are the accounts that a Bundle may name. A Bundle that names none stays
	// allowed, unless requireServiceAccount is true.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	AllowedServiceAccounts []limits.Name `json:"allowedServiceAccounts,omitempty"`
	// AllowNamespaceCreation lets deployments create namespaces. Default: false where a
	// service account is required, else true.
	// +optional
	// +nullable
	AllowNamespaceCreation *bool `json:"allowNamespaceCreation,omitempty"`
	// AllowedTargetNamespaces are the values that a Bundle may have in `namespace`. A Bundle without a
	// value is then refused.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	AllowedTargetNamespaces []limits.Name `json:"allowedTargetNamespaces,omitempty"`
	// AllowedTargetNamespaceSelector selects the target namespaces by their labels downstream. With
	// several selectors a namespace must match all. A Bundle without a value in `namespace` is then
	// refused.
	// +optional
	// +nullable
	AllowedTargetNamespaceSelector *metav1.LabelSelector `json:"allowedTargetNamespaceSelector,omitempty"`
	// AllowedDownstreamResources are the objects that a Bundle may name in downstreamResources.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	AllowedDownstreamResources []AllowedDownstreamResource `json:"allowedDownstreamResources,omitempty"`
	// GitRepo has rules for GitRepos. The hub does not read GitRepos yet.
	// +optional
	// +nullable
	GitRepo *GitRepoRules `json:"gitRepo,omitempty"`
	// HelmOp has rules for HelmOps.
	// +optional
	// +nullable
	HelmOp *HelmOpRules `json:"helmOp,omitempty"`
}

// AllowedDownstreamResource is an object that a Bundle may name in downstreamResources.
type AllowedDownstreamResource struct {
	// Kind is Secret or ConfigMap.
	// +required
	// +kubebuilder:validation:Enum=Secret;ConfigMap
	Kind string `json:"kind"`
	// Name of the object. Default: every object of the kind.
	// +optional
	// +nullable
	Name limits.Name `json:"name,omitempty"`
}

// GitRepoRules are the rules of a Policy for GitRepos.
type GitRepoRules struct {
	// DefaultServiceAccount is the account of a GitRepo that names none, before the Policy's own
	// default.
	// +optional
	// +nullable
	DefaultServiceAccount limits.Name `json:"defaultServiceAccount,omitempty"`
	// DefaultClientSecretName is the Secret of a GitRepo that names none. It is always allowed.
	// +optional
	// +nullable
	DefaultClientSecretName limits.Name `json:"defaultClientSecretName,omitempty"`
	// AllowedClientSecretNames are the Secrets that a GitRepo may name.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	AllowedClientSecretNames []limits.Name `json:"allowedClientSecretNames,omitempty"`
	// AllowedRepoPatterns are regular expressions. One must match the whole address of a repository.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	AllowedRepoPatterns []limits.Line `json:"allowedRepoPatterns,omitempty"`
}

// HelmOpRules are the rules of a Policy for HelmOps.
type HelmOpRules struct {
	// DefaultServiceAccount is the account of a HelmOp that names none, before the Policy's own
	// default.
	// +optional
	// +nullable
	DefaultServiceAccount limits.Name `json:"defaultServiceAccount,omitempty"`
	// DefaultHelmSecretName is the Secret of a HelmOp that names none. It is always allowed.
	// +optional
	// +nullable
	DefaultHelmSecretName limits.Name `json:"defaultHelmSecretName,omitempty"`
	// AllowedHelmSecretNames are the Secrets that a HelmOp may name.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	AllowedHelmSecretNames []limits.Name `json:"allowedHelmSecretNames,omitempty"`
	// AllowedHelmRepoPatterns are regular expressions. One must match the whole address of a chart
	// repository.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	AllowedHelmRepoPatterns []limits.Line `json:"allowedHelmRepoPatterns,omitempty"`
	// AllowedChartPatterns are regular expressions. One must match the whole name or address of a
	// chart.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	AllowedChartPatterns []limits.Line `json:"allowedChartPatterns,omitempty"`
}

// PolicyStatus is the status of a Policy.
type PolicyStatus struct {
	// Conditions: Ready, which is False while a rule is invalid, and Supported, which is False while
	// the Policy has rules without effect.
	// +optional
	// +nullable
	Conditions []Condition `json:"conditions,omitempty"`
}

// PolicyList is a list of Policies.
//
// +kubebuilder:object:root=true
type PolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Policy `json:"items"`
}
