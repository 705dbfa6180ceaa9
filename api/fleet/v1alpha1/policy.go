package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/api/limits"
)

// Policy restricts the Bundles of its namespace. Users who can write Policies can widen it.
//
// Several Policies in a namespace act together. Their lists are merged. The first default by name
// wins, and a requirement of any Policy counts. An empty list allows nothing. A list missing from
// all Policies allows everything.
//
// The rules can be in spec or at the top of the object.
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
	// spec holds the rules of the Policy. Rules at the top of the object count, too.
	// +optional
	// +nullable
	Spec *PolicyRules `json:"spec,omitempty"`
	// status is the observed state of the Policy. The hub writes it.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Status PolicyStatus `json:"status,omitempty"`
}

// PolicyRules are the rules of a Policy.
type PolicyRules struct {
	// requireServiceAccount refuses Bundles without a service account. Deployments then create no
	// namespaces, unless allowNamespaceCreation is true.
	// +optional
	RequireServiceAccount bool `json:"requireServiceAccount,omitempty"`
	// defaultServiceAccount is the account for a Bundle without one. It is always allowed.
	// +optional
	// +nullable
	DefaultServiceAccount limits.Name `json:"defaultServiceAccount,omitempty"`
	// allowedServiceAccounts are the accounts that a Bundle may name. A Bundle without an account is
	// also allowed, unless requireServiceAccount is true.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	AllowedServiceAccounts []limits.Name `json:"allowedServiceAccounts,omitempty"`
	// allowNamespaceCreation permits deployments to create namespaces. Default: false if a service
	// account is required, otherwise true.
	// +optional
	// +nullable
	AllowNamespaceCreation *bool `json:"allowNamespaceCreation,omitempty"`
	// allowedTargetNamespaces are the allowed values of `namespace` in a Bundle. With a list, the hub
	// refuses a Bundle without a value.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	AllowedTargetNamespaces []limits.Name `json:"allowedTargetNamespaces,omitempty"`
	// allowedTargetNamespaceSelector restricts the target namespaces by their labels downstream. A
	// namespace must match the selectors of all Policies. With a selector, the hub refuses a Bundle
	// without a value of `namespace`.
	// +optional
	// +nullable
	AllowedTargetNamespaceSelector *metav1.LabelSelector `json:"allowedTargetNamespaceSelector,omitempty"`
	// allowedDownstreamResources are the objects that a Bundle may name in downstreamResources.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	AllowedDownstreamResources []AllowedDownstreamResource `json:"allowedDownstreamResources,omitempty"`
	// gitRepo has rules for GitRepos.
	// +optional
	// +nullable
	GitRepo *GitRepoRules `json:"gitRepo,omitempty"`
	// helmOp has rules for HelmOps.
	// +optional
	// +nullable
	HelmOp *HelmOpRules `json:"helmOp,omitempty"`
}

// AllowedDownstreamResource is an object that a Bundle may name in downstreamResources.
type AllowedDownstreamResource struct {
	// kind is Secret or ConfigMap.
	// +required
	// +kubebuilder:validation:Enum=Secret;ConfigMap
	Kind string `json:"kind"`
	// name is the name of the object. Default: every object of the kind.
	// +optional
	// +nullable
	Name limits.Name `json:"name,omitempty"`
}

// GitRepoRules are the rules of a Policy for GitRepos.
type GitRepoRules struct {
	// defaultServiceAccount is the account for a GitRepo without one. It takes precedence over the
	// default for Bundles.
	// +optional
	// +nullable
	DefaultServiceAccount limits.Name `json:"defaultServiceAccount,omitempty"`
	// defaultClientSecretName is the Secret for a GitRepo without one. It is always allowed.
	// +optional
	// +nullable
	DefaultClientSecretName limits.Name `json:"defaultClientSecretName,omitempty"`
	// allowedClientSecretNames are the Secrets that a GitRepo may name.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	AllowedClientSecretNames []limits.Name `json:"allowedClientSecretNames,omitempty"`
	// allowedRepoPatterns are regular expressions. One of them must match the whole address of a
	// repository.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	AllowedRepoPatterns []limits.Line `json:"allowedRepoPatterns,omitempty"`
}

// HelmOpRules are the rules of a Policy for HelmOps.
type HelmOpRules struct {
	// defaultServiceAccount is the account for a HelmOp without one. It takes precedence over the
	// default for Bundles.
	// +optional
	// +nullable
	DefaultServiceAccount limits.Name `json:"defaultServiceAccount,omitempty"`
	// defaultHelmSecretName is the Secret for a HelmOp without one. It is always allowed.
	// +optional
	// +nullable
	DefaultHelmSecretName limits.Name `json:"defaultHelmSecretName,omitempty"`
	// allowedHelmSecretNames are the Secrets that a HelmOp may name.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	AllowedHelmSecretNames []limits.Name `json:"allowedHelmSecretNames,omitempty"`
	// allowedHelmRepoPatterns are regular expressions. One of them must match the whole address of a
	// chart repository.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	AllowedHelmRepoPatterns []limits.Line `json:"allowedHelmRepoPatterns,omitempty"`
	// allowedChartPatterns are regular expressions. One of them must match the whole name or address
	// of a chart.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	AllowedChartPatterns []limits.Line `json:"allowedChartPatterns,omitempty"`
}

// PolicyStatus is the status of a Policy.
type PolicyStatus struct {
	// conditions: Ready, Supported. Ready is False while a rule is invalid. Supported is False while
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
