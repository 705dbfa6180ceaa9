package reasons

// Reasons of the conditions of GitRepos and HelmOps.
const (
	// GitRepoInvalid: the spec of a GitRepo cannot be read; Accepted and Ready.
	GitRepoInvalid = "GitRepoInvalid"
	// GitCredentialsUnusable: the Secret with the credentials of a GitRepo is missing, or not usable;
	// Accepted and Ready.
	GitCredentialsUnusable = "GitCredentialsUnusable"
	// RepositoryUnreachable: the hub cannot read the newest commit of a repository; GitPolling and
	// Ready. The Bundles stay as they are.
	RepositoryUnreachable = "RepositoryUnreachable"
	// CommitUnreadable: a commit cannot become Bundles, or only some of its directories can; Ready.
	// No Bundle is deleted.
	CommitUnreadable = "CommitUnreadable"
	// BundleNameTaken: a Bundle with a name of the GitRepo has another owner; Ready.
	BundleNameTaken = "BundleNameTaken"
	// BundlesNotReady: the Bundles of a GitRepo are at its newest commit, and not all deployments are
	// ready; Ready.
	BundlesNotReady = "BundlesNotReady"
	// Polled: the hub has read the newest commit or version; GitPolling, or Polled of a HelmOp, is
	// True.
	Polled = "Polled"
	// PollingDisabled: the hub reads the repository only after a change of the object; GitPolling, or
	// Polled of a HelmOp, is True.
	PollingDisabled = "PollingDisabled"
	// Accepted: the object breaks no rule; Accepted is True.
	Accepted = "Accepted"
	// HelmOpInvalid: the spec of a HelmOp cannot be read; Accepted and Ready.
	HelmOpInvalid = "HelmOpInvalid"
	// ChartCredentialsUnusable: the Secret with the credentials for a chart is missing, or not usable;
	// Accepted and Ready.
	ChartCredentialsUnusable = "ChartCredentialsUnusable"
	// BundleRefused: the API server refuses the Bundle of a HelmOp; Ready.
	BundleRefused = "BundleRefused"
	// WebhookCommitNotVisible: the repository does not show the commit announced by a webhook; an
	// Event of the GitRepo.
	WebhookCommitNotVisible = "WebhookCommitNotVisible"
	// GotNewVersion: the Bundle of a HelmOp is at a new version of its chart; an Event of the HelmOp.
	GotNewVersion = "GotNewVersion"
	// GotNewCommit: the Bundles of a GitRepo are at a new commit; an Event of the GitRepo.
	GotNewCommit = "GotNewCommit"
)
