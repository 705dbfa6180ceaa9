package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/api/limits"
)

// GitRepo is a Git repository. The hub creates Bundles from its directories, and keeps the Bundles
// at the newest commit.
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
	// status keeps every field that upstream writes.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Status GitRepoStatus `json:"status,omitempty"`
}

// GitRepoSpec is the desired state of a GitRepo. Users write it.
type GitRepoSpec struct {
	// repo is the address of the repository: https, http, ssh, or user@host:path.
	// +optional
	// +nullable
	Repo limits.Line `json:"repo,omitempty"`
	// branch is the branch to follow. It has no effect if revision is set. Default master.
	// +optional
	// +nullable
	Branch limits.Line `json:"branch,omitempty"`
	// revision is a commit or a tag to use instead of a branch.
	// +optional
	// +nullable
	Revision limits.Line `json:"revision,omitempty"`
	// paths are patterns for directories of the repository. Default: the root. Each matching directory
	// becomes a Bundle, and so does each directory below it with a fleet.yaml.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	Paths []limits.Line `json:"paths,omitempty"`
	// bundles lists the directories that become Bundles, instead of paths.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	Bundles []BundlePath `json:"bundles,omitempty"`
	// targets select Clusters of the workspace. A Cluster must match one of them. Default: the
	// ClusterGroup `default`.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=4096
	Targets []GitTarget `json:"targets,omitempty"`
	// clientSecretName is the name of the Secret with the credentials for the repository. Its type is
	// kubernetes.io/basic-auth or kubernetes.io/ssh-auth. Default: `gitcredential`, if that Secret
	// exists.
	// +optional
	// +nullable
	ClientSecretName limits.Name `json:"clientSecretName,omitempty"`
	// helmSecretName is the name of the Secret with the credentials for charts.
	// +optional
	// +nullable
	HelmSecretName limits.Name `json:"helmSecretName,omitempty"`
	// helmSecretNameForPaths is the name of the Secret with the credentials for charts by path, under
	// the key `secrets-path.yaml`. It replaces helmSecretName.
	// +optional
	// +nullable
	HelmSecretNameForPaths limits.Name `json:"helmSecretNameForPaths,omitempty"`
	// helmRepoURLRegex is a regular expression. Only matching addresses receive the credentials for
	// charts. Default: none.
	// +optional
	// +nullable
	HelmRepoURLRegex limits.Line `json:"helmRepoURLRegex,omitempty"`
	// caBundle is a PEM bundle of further certificate authorities for the server of the repository.
	// +optional
	// +nullable
	CABundle []byte `json:"caBundle,omitempty"`
	// insecureSkipTLSVerify turns off the check of the server's certificate.
	// +optional
	InsecureSkipTLSVerify bool `json:"insecureSkipTLSVerify,omitempty"`
	// targetNamespace forces the resources of all Bundles into one namespace.
	// +optional
	// +nullable
	TargetNamespace limits.Name `json:"targetNamespace,omitempty"`
	// serviceAccount is the ServiceAccount for the deployments, in the agent's namespace downstream.
	// +optional
	// +nullable
	ServiceAccount limits.Name `json:"serviceAccount,omitempty"`
	// paused pauses the Bundles of this GitRepo.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// pollingInterval is the time between two checks of the repository. Default 15 s, and one hour as
	// long as webhooks announce the newest commit.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self == '0' || (self.matches('^[-+]?([0-9]+([.][0-9]*)?(ns|us|µs|ms|s|m|h))+$') && duration(self) <= duration('2562047h'))",message="pollingInterval must be 0 or a Go duration such as 60s or 10m, at most 2562047h; the units are ns, us, µs, ms, s, m and h, there is none for days"
	PollingInterval *metav1.Duration `json:"pollingInterval,omitempty"`
	// disablePolling turns off the periodic checks. The hub then checks the repository only after a
	// change of this spec.
	// +optional
	DisablePolling bool `json:"disablePolling,omitempty"`
	// forceSyncGeneration makes the agents deploy again after each change of its value.
	// +optional
	ForceSyncGeneration int64 `json:"forceSyncGeneration,omitempty"`
	// keepResources keeps the resources downstream when a Bundle is removed.
	// +optional
	KeepResources bool `json:"keepResources,omitempty"`
	// deleteNamespace has the same meaning as in a Bundle.
	// +optional
	DeleteNamespace bool `json:"deleteNamespace,omitempty"`
	// correctDrift has the same meaning as in a Bundle.
	// +optional
	// +nullable
	CorrectDrift *CorrectDrift `json:"correctDrift,omitempty"`
	// ociRegistrySecret is the name of the Secret for the registry of the contents.
	// +optional
	// +nullable
	OCIRegistrySecret limits.Name `json:"ociRegistrySecret,omitempty"`
	// webhookSecret is the name of the Secret with the secret of the webhook. Its key is `github`,
	// `gitlab`, `gitea`, `gogs`, `bitbucket` or `bitbucket-server`. For Azure DevOps the keys are
	// `azure-username` and `azure-password`. Default: the Secret `gitjob-webhook` in the hub's
	// namespace.
	// +optional
	// +nullable
	WebhookSecret limits.Name `json:"webhookSecret,omitempty"`
	// imageScanInterval has no effect in Muster. It is kept for Rancher Fleet.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self == '0' || (self.matches('^[-+]?([0-9]+([.][0-9]*)?(ns|us|µs|ms|s|m|h))+$') && duration(self) <= duration('2562047h'))",message="imageScanInterval must be 0 or a Go duration such as 60s or 10m, at most 2562047h; the units are ns, us, µs, ms, s, m and h, there is none for days"
	ImageScanInterval *metav1.Duration `json:"imageScanInterval,omitempty"`
	// imageScanCommit has no effect in Muster. It is kept for Rancher Fleet.
	// +optional
	// +nullable
	ImageScanCommit *ImageScanCommit `json:"imageScanCommit,omitempty"`
}

// BundlePath is a directory that becomes a Bundle.
type BundlePath struct {
	// base is the directory.
	// +optional
	// +nullable
	Base limits.Line `json:"base,omitempty"`
	// options is the path of a file in the format of fleet.yaml, relative to base. Default: the
	// fleet.yaml in base.
	// +optional
	// +nullable
	Options limits.Line `json:"options,omitempty"`
}

// GitTarget selects Clusters. A Cluster must match each of the four selectors that is set.
type GitTarget struct {
	// name is the name of the target, for readers.
	// +optional
	// +nullable
	Name limits.Name `json:"name,omitempty"`
	// clusterName has the same meaning as in a target of a Bundle.
	// +optional
	// +nullable
	ClusterName limits.Name `json:"clusterName,omitempty"`
	// clusterSelector has the same meaning as in a target of a Bundle.
	// +optional
	// +nullable
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
	// clusterGroup has the same meaning as in a target of a Bundle.
	// +optional
	// +nullable
	ClusterGroup limits.Name `json:"clusterGroup,omitempty"`
	// clusterGroupSelector has the same meaning as in a target of a Bundle.
	// +optional
	// +nullable
	ClusterGroupSelector *metav1.LabelSelector `json:"clusterGroupSelector,omitempty"`
}

// ImageScanCommit is kept for Rancher Fleet.
type ImageScanCommit struct {
	// authorName is the name of the author of commits.
	// +optional
	// +nullable
	AuthorName limits.Name `json:"authorName,omitempty"`
	// authorEmail is the email address of the author of commits.
	// +optional
	// +nullable
	AuthorEmail limits.Name `json:"authorEmail,omitempty"`
	// messageTemplate is the template of the message of commits.
	// +optional
	// +nullable
	MessageTemplate limits.Message `json:"messageTemplate,omitempty"`
}

// GitRepoStatus is the observed state of a GitRepo. The hub writes it.
type GitRepoStatus struct {
	// conditions: Ready, Accepted, GitPolling, Reconciling.
	// +optional
	// +nullable
	Conditions []Condition `json:"conditions,omitempty"`
	// commit is the commit behind the Bundles. All Bundles of this commit exist.
	// +optional
	// +nullable
	Commit string `json:"commit,omitempty"`
	// pollingCommit is the newest commit of the repository.
	// +optional
	// +nullable
	PollingCommit string `json:"pollingCommit,omitempty"`
	// webhookCommit is the commit that the last webhook announced.
	// +optional
	// +nullable
	WebhookCommit string `json:"webhookCommit,omitempty"`
	// lastWebhookTime is the time of the last webhook.
	// +optional
	// +nullable
	LastWebhookTime *metav1.Time `json:"lastWebhookTime,omitempty"`
	// lastPollingTriggered is the time of the last check that changed this status.
	// +optional
	// +nullable
	LastPollingTime *metav1.Time `json:"lastPollingTriggered,omitempty"`
	// observedGeneration is the metadata.generation of the spec behind the Bundles.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// updateGeneration is the value of spec.forceSyncGeneration behind the Bundles.
	// +optional
	UpdateGeneration int64 `json:"updateGeneration,omitempty"`
	// bundles is the number of Bundles of the commit. A Muster addition.
	// +optional
	Bundles int `json:"bundles,omitempty"`
	// summary counts the BundleDeployments by state.
	// +optional
	Summary BundleSummary `json:"summary,omitempty"`
	// display holds the columns of `kubectl get`.
	// +optional
	Display SourceDisplay `json:"display,omitempty"`
	// SourceResources describes the deployed resources of the Bundles.
	SourceResources `json:",inline"`
}

// SourceDisplay holds the columns of `kubectl get` for GitRepos and HelmOps.
type SourceDisplay struct {
	// readyBundleDeployments is `ready/desired`.
	// +optional
	// +nullable
	ReadyBundleDeployments string `json:"readyBundleDeployments,omitempty"`
	// state is the worst state of a Bundle, or GitUpdating.
	// +optional
	// +nullable
	State string `json:"state,omitempty"`
	// message is the message of the condition Ready if it is False.
	// +optional
	// +nullable
	Message string `json:"message,omitempty"`
	// error reports whether the message is an error.
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
