package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/api/limits"
)

// GitRepo is a Git repository. The hub makes Bundles of its directories, and keeps the Bundles at
// the newest commit.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=gitrepos,categories=fleet
// +kubebuilder:printcolumn:name="Repo",type=string,JSONPath=`.spec.repo`
// +kubebuilder:printcolumn:name="Commit",type=string,JSONPath=`.status.commit`
// +kubebuilder:printcolumn:name="BundleDeployments-Ready",type=string,JSONPath=`.status.display.readyBundleDeployments`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type GitRepo struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec GitRepoSpec `json:"spec,omitempty"`
	// Status keeps every field that upstream writes.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Status GitRepoStatus `json:"status,omitempty"`
}

// GitRepoSpec is written by users.
type GitRepoSpec struct {
	// Repo is the address of the repository: https, http, ssh, or user@host:path.
	// +optional
	// +nullable
	Repo limits.Line `json:"repo,omitempty"`
	// Branch to follow, unless revision is set. Default master.
	// +optional
	// +nullable
	Branch limits.Line `json:"branch,omitempty"`
	// Revision is a commit or a tag, instead of a branch.
	// +optional
	// +nullable
	Revision limits.Line `json:"revision,omitempty"`
	// Paths are directories of the repository, as patterns; default the root. Each of them, and each
	// directory below with a fleet.yaml, becomes a Bundle.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	Paths []limits.Line `json:"paths,omitempty"`
	// Bundles lists the directories that become Bundles, instead of paths.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	Bundles []BundlePath `json:"bundles,omitempty"`
	// Targets select Clusters of the workspace; one of them must match. Default the ClusterGroup
	// `default`.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=4096
	Targets []GitTarget `json:"targets,omitempty"`
	// ClientSecretName names a Secret of the workspace with the credentials for the repository. Its
	// type is kubernetes.io/basic-auth or kubernetes.io/ssh-auth. Default `gitcredential` if it
	// exists.
	// +optional
	// +nullable
	ClientSecretName limits.Name `json:"clientSecretName,omitempty"`
	// HelmSecretName names a Secret of the workspace with credentials for charts.
	// +optional
	// +nullable
	HelmSecretName limits.Name `json:"helmSecretName,omitempty"`
	// HelmSecretNameForPaths names a Secret of the workspace with credentials for charts by path,
	// under the key `secrets-path.yaml`. It replaces helmSecretName.
	// +optional
	// +nullable
	HelmSecretNameForPaths limits.Name `json:"helmSecretNameForPaths,omitempty"`
	// HelmRepoURLRegex selects the addresses that get the credentials for charts. Default none.
	// +optional
	// +nullable
	HelmRepoURLRegex limits.Line `json:"helmRepoURLRegex,omitempty"`
	// CABundle is the PEM of further authorities for the certificate of the repository's server.
	// +optional
	// +nullable
	CABundle []byte `json:"caBundle,omitempty"`
	// InsecureSkipTLSVerify accepts any certificate of the repository's server.
	// +optional
	InsecureSkipTLSVerify bool `json:"insecureSkipTLSVerify,omitempty"`
	// TargetNamespace forces the resources of all Bundles into one namespace.
	// +optional
	// +nullable
	TargetNamespace limits.Name `json:"targetNamespace,omitempty"`
	// ServiceAccount is the account of the deployments in the agent's namespace downstream.
	// +optional
	// +nullable
	ServiceAccount limits.Name `json:"serviceAccount,omitempty"`
	// Paused writes the Bundles paused.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// PollingInterval is the time between two looks at the repository. Default 15 s, and one hour as
	// long as webhooks announce the newest commit.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self == '0' || (self.matches('^[-+]?([0-9]+([.][0-9]*)?(ns|us|µs|ms|s|m|h))+$') && duration(self) <= duration('2562047h'))",message="pollingInterval must be 0 or a Go duration such as 60s or 10m, at most 2562047h; the units are ns, us, µs, ms, s, m and h, there is none for days"
	PollingInterval *metav1.Duration `json:"pollingInterval,omitempty"`
	// DisablePolling looks at the repository only after a change of this spec.
	// +optional
	DisablePolling bool `json:"disablePolling,omitempty"`
	// ForceSyncGeneration deploys again after each change.
	// +optional
	ForceSyncGeneration int64 `json:"forceSyncGeneration,omitempty"`
	// KeepResources leaves the resources downstream when a Bundle goes.
	// +optional
	KeepResources bool `json:"keepResources,omitempty"`
	// DeleteNamespace as for Bundles.
	// +optional
	DeleteNamespace bool `json:"deleteNamespace,omitempty"`
	// CorrectDrift as for Bundles.
	// +optional
	// +nullable
	CorrectDrift *CorrectDrift `json:"correctDrift,omitempty"`
	// OCIRegistrySecret names the Secret of a registry for the contents.
	// +optional
	// +nullable
	OCIRegistrySecret limits.Name `json:"ociRegistrySecret,omitempty"`
	// WebhookSecret names a Secret of the workspace with the secret of the webhook. Its key is
	// `github`, `gitlab`, `gitea`, `gogs`, `bitbucket` or `bitbucket-server`. For Azure DevOps the
	// keys are `azure-username` and `azure-password`. Default the Secret `gitjob-webhook` of the hub's
	// namespace.
	// +optional
	// +nullable
	WebhookSecret limits.Name `json:"webhookSecret,omitempty"`
	// ImageScanInterval is kept for Rancher Fleet.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self == '0' || (self.matches('^[-+]?([0-9]+([.][0-9]*)?(ns|us|µs|ms|s|m|h))+$') && duration(self) <= duration('2562047h'))",message="imageScanInterval must be 0 or a Go duration such as 60s or 10m, at most 2562047h; the units are ns, us, µs, ms, s, m and h, there is none for days"
	ImageScanInterval *metav1.Duration `json:"imageScanInterval,omitempty"`
	// ImageScanCommit is kept for Rancher Fleet.
	// +optional
	// +nullable
	ImageScanCommit *ImageScanCommit `json:"imageScanCommit,omitempty"`
}

// BundlePath is a directory that becomes a Bundle.
type BundlePath struct {
	// Base is the directory.
	// +optional
	// +nullable
	Base limits.Line `json:"base,omitempty"`
	// Options is the path of a file like fleet.yaml, from base. Default base's own fleet.yaml.
	// +optional
	// +nullable
	Options limits.Line `json:"options,omitempty"`
}

// GitTarget selects Clusters. All of the four selectors that are set must match.
type GitTarget struct {
	// Name of the target, for readers.
	// +optional
	// +nullable
	Name limits.Name `json:"name,omitempty"`
	// ClusterName as in a target of a Bundle.
	// +optional
	// +nullable
	ClusterName limits.Name `json:"clusterName,omitempty"`
	// ClusterSelector as in a target of a Bundle.
	// +optional
	// +nullable
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
	// ClusterGroup as in a target of a Bundle.
	// +optional
	// +nullable
	ClusterGroup limits.Name `json:"clusterGroup,omitempty"`
	// ClusterGroupSelector as in a target of a Bundle.
	// +optional
	// +nullable
	ClusterGroupSelector *metav1.LabelSelector `json:"clusterGroupSelector,omitempty"`
}

// ImageScanCommit is kept for Rancher Fleet.
type ImageScanCommit struct {
	// AuthorName of commits.
	// +optional
	// +nullable
	AuthorName limits.Name `json:"authorName,omitempty"`
	// AuthorEmail of commits.
	// +optional
	// +nullable
	AuthorEmail limits.Name `json:"authorEmail,omitempty"`
	// MessageTemplate of commits.
	// +optional
	// +nullable
	MessageTemplate limits.Message `json:"messageTemplate,omitempty"`
}

// GitRepoStatus is written by the hub.
type GitRepoStatus struct {
	// Conditions: Ready, Accepted, GitPolling, Reconciling.
	// +optional
	// +nullable
	Conditions []Condition `json:"conditions,omitempty"`
	// Commit is the commit of the Bundles: all of its Bundles exist.
	// +optional
	// +nullable
	Commit string `json:"commit,omitempty"`
	// PollingCommit is the newest commit of the repository.
	// +optional
	// +nullable
	PollingCommit string `json:"pollingCommit,omitempty"`
	// WebhookCommit is the commit that the last webhook announced.
	// +optional
	// +nullable
	WebhookCommit string `json:"webhookCommit,omitempty"`
	// LastWebhookTime is the time of the last webhook.
	// +optional
	// +nullable
	LastWebhookTime *metav1.Time `json:"lastWebhookTime,omitempty"`
	// LastPollingTime (`lastPollingTriggered`) is the time of the last look that changed this status.
	// +optional
	// +nullable
	LastPollingTime *metav1.Time `json:"lastPollingTriggered,omitempty"`
	// ObservedGeneration is the generation of the spec behind the Bundles.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// UpdateGeneration is the forceSyncGeneration behind the Bundles.
	// +optional
	UpdateGeneration int64 `json:"updateGeneration,omitempty"`
	// Bundles is the number of Bundles of the commit. A Muster addition.
	// +optional
	Bundles int `json:"bundles,omitempty"`
	// Summary counts the BundleDeployments by state.
	// +optional
	Summary BundleSummary `json:"summary,omitempty"`
	// Display holds the columns of `kubectl get`.
	// +optional
	Display SourceDisplay `json:"display,omitempty"`
	// SourceResources is about what the Bundles have deployed.
	SourceResources `json:",inline"`
}

// SourceDisplay holds the columns of `kubectl get` for GitRepos and HelmOps.
type SourceDisplay struct {
	// ReadyBundleDeployments is `ready/desired`.
	// +optional
	// +nullable
	ReadyBundleDeployments string `json:"readyBundleDeployments,omitempty"`
	// State is the worst bundle state, or GitUpdating.
	// +optional
	// +nullable
	State string `json:"state,omitempty"`
	// Message is the message of the condition Ready if it is False.
	// +optional
	// +nullable
	Message string `json:"message,omitempty"`
	// Error reports whether the message is an error.
	// +optional
	Error bool `json:"error,omitempty"`
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
