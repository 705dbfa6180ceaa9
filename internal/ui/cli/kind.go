package cli

import (
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// kind is a table of objects.
type kind struct {
	// name and aliases are the accepted arguments.
	name    string
	aliases []string
	// namespaced lists the namespaced kinds of the table, global the cluster-scoped ones.
	namespaced, global []client.ObjectList
	// columns are all columns of the table; wide are the columns of --output wide only.
	columns, wide []string
}

// kindApprovals are the approval requests of staged update runs.
const kindApprovals = "approvals"

// kinds lists the tables. The first one is the default.
var kinds = []kind{
	{
		name: "members", aliases: []string{"member"}, columns: view.MemberColumns, wide: view.MemberWide,
		namespaced: []client.ObjectList{&fleet.ClusterList{}}, global: []client.ObjectList{&clusterv1beta1.MemberClusterList{}},
	},
	{
		name: "clusters", aliases: []string{"cluster"}, columns: view.MemberColumns, wide: view.MemberWide,
		namespaced: []client.ObjectList{&fleet.ClusterList{}},
	},
	{
		name: "memberclusters", aliases: []string{"membercluster", "mc"}, columns: view.MemberColumns, wide: view.MemberWide,
		global: []client.ObjectList{&clusterv1beta1.MemberClusterList{}},
	},
	{
		name: "tokens", aliases: []string{"token", "clusterregistrationtokens", "clusterregistrationtoken"},
		columns:    view.TokenColumns,
		namespaced: []client.ObjectList{&fleet.ClusterRegistrationTokenList{}},
	},
	{
		name: "requests", aliases: []string{"request", "clusterregistrations", "clusterregistration"},
		columns:    view.RequestColumns,
		wide:       view.RequestWide,
		namespaced: []client.ObjectList{&fleet.ClusterRegistrationList{}},
	},
	{
		name: "bundles", aliases: []string{"bundle"},
		columns:    view.BundleColumns,
		namespaced: []client.ObjectList{&fleet.BundleList{}},
	},
	{
		name: "repos", aliases: []string{"repo", "gitrepos", "gitrepo"},
		columns:    view.GitRepoColumns,
		namespaced: []client.ObjectList{&fleet.GitRepoList{}},
	},
	{
		name: "helmops", aliases: []string{"helmop"},
		columns:    view.HelmOpColumns,
		namespaced: []client.ObjectList{&fleet.HelmOpList{}},
	},
	{
		name: "placements", aliases: []string{
			"placement", "clusterresourceplacements", "clusterresourceplacement", "crp", "resourceplacements", "resourceplacement", "rp",
		},
		columns:    view.PlacementColumns,
		namespaced: []client.ObjectList{&placement.ResourcePlacementList{}},
		global:     []client.ObjectList{&placement.ClusterResourcePlacementList{}},
	},
	{
		name: "runs", aliases: []string{
			"run", "clusterstagedupdateruns", "clusterstagedupdaterun", "csur", "stagedupdateruns", "stagedupdaterun", "sur",
		},
		columns:    view.RunColumns,
		namespaced: []client.ObjectList{&placement.StagedUpdateRunList{}}, global: []client.ObjectList{&placement.ClusterStagedUpdateRunList{}},
	},
	{
		name: kindApprovals,
		aliases: []string{
			"approval", "clusterapprovalrequests", "clusterapprovalrequest", "careq", "approvalrequests", "approvalrequest", "areq",
		},
		columns: view.ApprovalColumns, global: []client.ObjectList{&placement.ClusterApprovalRequestList{}},
		namespaced: []client.ObjectList{&placement.ApprovalRequestList{}},
	},
}

// lists returns the kinds to read. In a namespace, namespaced kinds are enough if there are
// any.
func (k kind) lists(namespace string) []client.ObjectList {
	if namespace != "" && len(k.namespaced) > 0 {
		return k.namespaced
	}
	return append(slices.Clone(k.namespaced), k.global...)
}

// isMembers reports whether a table has members: both kinds, or one of the two.
func isMembers(table string) bool {
	return slices.Contains(namesOf(lookedFor{among: kinds[:1]}.kinds()), table)
}

// kindOf returns the table for an argument.
func kindOf(said string) (kind, bool) {
	said = strings.ToLower(said)
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == said || slices.Contains(k.aliases, said) })
	if i < 0 {
		return kind{}, false
	}
	return kinds[i], true
}
