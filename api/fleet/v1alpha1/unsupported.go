package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kinds of Rancher Fleet's that Muster keeps as they are and does nothing with, so that its command line works and manifests can be applied. Their
// fields are not in the schemas. The hub says in the condition Supported what does their job.

// UnsupportedStatus is the status of a kind that Muster does nothing with.
type UnsupportedStatus struct {
	// Conditions: Supported, which is False and says what to use instead. It is the hub's; whatever else there is it leaves alone.
	// +optional
	// +nullable
	Conditions []Condition `json:"conditions,omitempty"`
}

// GitRepo is a repository of which Rancher Fleet makes Bundles. Muster does nothing with it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=gitrepos,categories=fleet
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:printcolumn:name="Repo",type=string,JSONPath=`.spec.repo`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Supported")].message`
type GitRepo struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Whatever upstream writes is kept.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Status UnsupportedStatus `json:"status,omitempty"`
}

// GitRepoList is a list of GitRepos.
//
// +kubebuilder:object:root=true
type GitRepoList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GitRepo `json:"items"`
}

// HelmOp is a Helm chart that Rancher Fleet deploys without a repository. Muster does nothing with it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=helmops,categories=fleet
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:printcolumn:name="Repo",type=string,JSONPath=`.spec.helm.repo`
// +kubebuilder:printcolumn:name="Chart",type=string,JSONPath=`.spec.helm.chart`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Supported")].message`
type HelmOp struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Whatever upstream writes is kept.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Status UnsupportedStatus `json:"status,omitempty"`
}

// HelmOpList is a list of HelmOps.
//
// +kubebuilder:object:root=true
type HelmOpList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []HelmOp `json:"items"`
}

// Policy restricts what Bundles may do in Rancher Fleet. Muster does nothing with it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=policies
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Supported")].message`
type Policy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Whatever upstream writes is kept.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Status UnsupportedStatus `json:"status,omitempty"`
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

// Schedule says in Rancher Fleet when Clusters may be deployed to. Muster does nothing with it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=schedules
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=`.spec.schedule`
// +kubebuilder:printcolumn:name="Duration",type=string,JSONPath=`.spec.duration`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Supported")].message`
type Schedule struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Whatever upstream writes is kept.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Status UnsupportedStatus `json:"status,omitempty"`
}

// ScheduleList is a list of Schedules.
//
// +kubebuilder:object:root=true
type ScheduleList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Schedule `json:"items"`
}

// ImageScan looks in Rancher Fleet for new tags of an image. Muster does nothing with it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=imagescans
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:printcolumn:name="Repository",type=string,JSONPath=`.spec.image`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Supported")].message`
type ImageScan struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Whatever upstream writes is kept.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Status UnsupportedStatus `json:"status,omitempty"`
}

// ImageScanList is a list of ImageScans.
//
// +kubebuilder:object:root=true
type ImageScanList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ImageScan `json:"items"`
}

// GitRepoRestriction restricts what GitRepos may do in Rancher Fleet. Muster does nothing with it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=gitreporestrictions
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:printcolumn:name="Default-ServiceAccount",type=string,JSONPath=`.defaultServiceAccount`
// +kubebuilder:printcolumn:name="Allowed-ServiceAccounts",type=string,JSONPath=`.allowedServiceAccounts`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Supported")].message`
type GitRepoRestriction struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Whatever upstream writes is kept.
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
