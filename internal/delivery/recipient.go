package delivery

import (
	"strings"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
)

// RecipientLabels are those by which the hub says which member something is for. The member is named as placements name it: a MemberCluster by its
// name, a Cluster by workspace/name.
func RecipientLabels(member string) map[string]string {
	workspace, cluster, isCluster := strings.Cut(member, "/")
	if !isCluster {
		return map[string]string{clusterv1beta1.LabelMemberName: member}
	}
	return map[string]string{fleet.LabelClusterNamespace: workspace, fleet.LabelCluster: naming.SafeConcat(cluster)}
}

// OtherRecipient names the member that something in a member namespace is labelled for, if it is another than the one whose report has a name; else it
// is empty. The namespace of a member follows from its name, so that labels prove it. What has no labels is for whom it is written to: hubs before did
// not label Works.
func OtherRecipient(labels map[string]string, namespace, report string) string {
	if member := labels[clusterv1beta1.LabelMemberName]; member != "" && naming.MemberClusterNamespace(member) != namespace {
		return "MemberCluster " + member
	}
	workspace, cluster := labels[fleet.LabelClusterNamespace], labels[fleet.LabelCluster]
	if workspace == "" && cluster == "" || cluster == naming.SafeConcat(report) && naming.MemberNamespace(workspace, report) == namespace {
		return ""
	}
	return "Cluster " + workspace + "/" + cluster
}
