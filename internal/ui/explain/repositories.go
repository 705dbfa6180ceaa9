package explain

import "github.com/muster-fleet/muster/internal/fleet/reasons"

// repositoryCauses explains problems of GitRepos and HelmOps.
var repositoryCauses = []cause{
	{
		kinds: ofSources, reasons: []string{reasons.NoTarget},
		means: "No Bundle of this source matches a Cluster, so nothing is deployed.",
		remedy: "Compare spec.targets with the labels of the Clusters. Without targets, a GitRepo selects the ClusterGroup default: " +
			"create it, or set targets.",
		onHub: []string{"kubectl -n NAMESPACE get clusters.fleet.cattle.io --show-labels"}, aside: true,
	},
	{
		kinds: ofSources, reasons: []string{reasons.KindNotImplemented},
		means:  "The hub reads no repositories, because the value gitops.enabled of the chart fleet is false.",
		remedy: "Set the value to true.",
		onHub:  []string{"helm -n cattle-fleet-system upgrade --reuse-values --set gitops.enabled=true fleet fleet/fleet"},
	},
	{
		kinds: ofGitRepos, reasons: []string{reasons.GitRepoInvalid},
		means:  "The spec of the GitRepo is invalid. Deployed objects stay unchanged.",
		remedy: "Correct the field in the message.",
		onHub:  []string{"kubectl -n NAMESPACE edit gitrepo NAME"},
	},
	{
		kinds: ofHelmOps, reasons: []string{reasons.HelmOpInvalid},
		means:  "The spec of the HelmOp is invalid. Deployed objects stay unchanged.",
		remedy: "Correct the field in the message.",
		onHub:  []string{"kubectl -n NAMESPACE edit helmop NAME"},
	},
	{
		kinds: ofHelmOps, reasons: []string{reasons.PolicyViolation},
		means:  "The HelmOp has a value that the Policies of the namespace do not allow. Deployed objects stay unchanged.",
		remedy: "Change the value in the message, or let an administrator change a Policy.",
		onHub:  []string{"kubectl -n NAMESPACE get policies.fleet.cattle.io -o yaml"},
	},
	{
		kinds: ofHelmOps, reasons: []string{reasons.ChartCredentialsUnusable},
		means:  "The hub cannot use the Secret with the credentials for the chart.",
		remedy: "Create the Secret in the message. The hub checks again after 15 seconds.",
		onHub: []string{"kubectl -n NAMESPACE create secret generic SECRET --from-literal=username=USER " +
			"--from-literal=password=TOKEN"},
	},
	{
		kinds: ofHelmOps, reasons: []string{reasons.ChartUnreadable},
		means: "The hub cannot read the chart: its server does not answer, refuses the credentials, or has no such version. Deployed objects " +
			"stay unchanged. The hub retries at growing intervals of up to 10 minutes.",
		remedy: "Correct helm.repo, helm.chart, helm.version or the credentials, as the message says.",
		onHub:  []string{"kubectl -n cattle-fleet-system logs deployment/fleet-gitops"},
	},
	{
		kinds: ofHelmOps, reasons: []string{reasons.BundleRefused},
		means:  "The API server refuses the Bundle of the HelmOp. Deployed objects stay unchanged.",
		remedy: "Correct the HelmOp as the message says.",
		onHub:  []string{"kubectl -n NAMESPACE edit helmop NAME"},
	},
	{
		kinds: ofHelmOps, reasons: []string{reasons.BundleNameTaken},
		means:  "A Bundle with the name of the HelmOp exists and has another owner. The hub leaves it unchanged.",
		remedy: "Delete that Bundle, or create the HelmOp under another name.",
		onHub:  []string{"kubectl -n NAMESPACE get bundle NAME -o yaml"},
	},
	{
		kinds: ofGitRepos, reasons: []string{reasons.PolicyViolation},
		means: "The GitRepo, or a fleet.yaml of its repository, has a value that the Policies or GitRepoRestrictions of the namespace do not " +
			"allow. Deployed objects stay unchanged.",
		remedy: "Change the value in the message, or let an administrator change a Policy.",
		onHub:  []string{"kubectl -n NAMESPACE get policies.fleet.cattle.io,gitreporestrictions -o yaml"},
	},
	{
		kinds: ofGitRepos, reasons: []string{reasons.GitCredentialsUnusable},
		means:  "The hub cannot use the Secret with the credentials for the repository.",
		remedy: "Create the Secret with the type in the message. The hub checks again after 15 seconds.",
		onHub: []string{"kubectl -n NAMESPACE create secret generic SECRET --type=kubernetes.io/basic-auth " +
			"--from-literal=username=USER --from-literal=password=TOKEN"},
	},
	{
		kinds: ofGitRepos, reasons: []string{reasons.RepositoryUnreachable},
		means: "The hub cannot read the repository: its server does not answer, refuses the credentials, or has no such branch. Deployed " +
			"objects stay unchanged. The hub retries at growing intervals of up to 10 minutes.",
		remedy: "Correct the address, the branch or the credentials, as the message says.",
		onHub:  []string{"kubectl -n cattle-fleet-system logs deployment/fleet-gitops"},
	},
	{
		kinds: ofGitRepos, reasons: []string{reasons.CommitUnreadable},
		means: "A file of the commit is invalid, so some Bundles stay at an earlier commit. Until the file is corrected, the hub deletes no " +
			"Bundle.",
		remedy: "Correct the file in the message, and push. To check a directory before a push, print its Bundles with " +
			"muster bundle DIRECTORY.",
	},
	{
		kinds: ofGitRepos, reasons: []string{reasons.BundleNameTaken},
		means:  "A Bundle with the name of a directory exists and has another owner. The hub leaves it unchanged.",
		remedy: "Delete that Bundle, or set another name in the fleet.yaml of the directory.",
		onHub:  []string{"kubectl -n NAMESPACE get bundles.fleet.cattle.io -L fleet.cattle.io/repo-name"},
	},
	{
		kinds: ofSources, reasons: []string{reasons.BundlesNotReady}, passing: true,
		means:  "The Bundles have the new commit or version, but some of their deployments are not ready.",
		remedy: "Wait, or run muster explain for the Bundles in the message.",
		onHub:  []string{"muster get bundles -n NAMESPACE"},
	},
	{
		kinds: ofSources, reasons: []string{reasons.Leaving},
		means:  "The object is being deleted, and has a finalizer of another program.",
		remedy: "If that program is gone, remove the finalizers.",
		onHub:  []string{"kubectl -n NAMESPACE edit gitrepos,helmops"},
	},
}
