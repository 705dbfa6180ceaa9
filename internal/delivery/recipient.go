package delivery

import (
	"strconv"
	"strings"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
)

// RecipientLabels are those by which the hub says which member something is for. The member is
// named as placements name it: a MemberCluster by its name, a Cluster by workspace/name. The epoch
// is how often the member was revoked.
func RecipientLabels(member string, epoch int) map[string]string {
	labels := EpochLabels(epoch)
	workspace, cluster, isCluster := strings.Cut(member, "/")
	if !isCluster {
		labels[clusterv1beta1.LabelMemberName] = member
		return labels
	}
	labels[fleet.LabelClusterNamespace], labels[fleet.LabelCluster] = workspace, naming.SafeConcat(cluster)
	return labels
}

// EpochLabels say how often the recipient was revoked; there are none if it never was.
func EpochLabels(epoch int) map[string]string {
	if epoch == 0 {
		return map[string]string{}
	}
	return map[string]string{clusterv1beta1.AnnotationMemberEpoch: strconv.Itoa(epoch)}
}

// OtherRecipient names the member that something in a member namespace is labelled for, if it is
// another than the one whose report has a name; else it is empty. The namespace of a member follows
// from its name and epoch, so that labels prove it. What has no labels is for whom it is written
// to: hubs before did not label Works.
func OtherRecipient(labels map[string]string, namespace, report string) string {
	epoch := epochOf(labels)
	if member := labels[clusterv1beta1.LabelMemberName]; member != "" && naming.MemberClusterNamespaceAt(epoch, member) != namespace {
		return "MemberCluster " + member
	}
	workspace, cluster := labels[fleet.LabelClusterNamespace], labels[fleet.LabelCluster]
	if workspace == "" && cluster == "" || cluster == naming.SafeConcat(report) && isNamespaceOf(epoch, workspace, report, namespace) {
		return ""
	}
	return "Cluster " + workspace + "/" + cluster
}

// isNamespaceOf reports whether a namespace has the name of the member namespace of a Cluster in an
// epoch. Which of the two forms it has, the hub decides when the epoch begins.
func isNamespaceOf(epoch int, workspace, cluster, namespace string) bool {
	return naming.MemberNamespaceAt(epoch, workspace, cluster) == namespace ||
		naming.LongMemberNamespaceAt(epoch, workspace, cluster) == namespace
}

// maxFormer bounds how many former namespaces of a member are compared with another.
const maxFormer = 64

// Inherits returns whether the recipient that labels name, whose report has a name, had a member
// namespace before it was revoked. What was delivered there is still its own.
func Inherits(labels map[string]string, namespace, report string) bool {
	member, workspace := labels[clusterv1beta1.LabelMemberName], labels[fleet.LabelClusterNamespace]
	for epoch, tried := epochOf(labels)-1, 0; epoch >= 0 && tried < maxFormer; epoch, tried = epoch-1, tried+1 {
		if member != "" && naming.MemberClusterNamespaceAt(epoch, member) == namespace ||
			workspace != "" && isNamespaceOf(epoch, workspace, report, namespace) {
			return true
		}
	}
	return false
}

// epochOf is how often the recipient that labels name was revoked.
func epochOf(labels map[string]string) int {
	epoch, err := strconv.Atoi(labels[clusterv1beta1.AnnotationMemberEpoch])
	if err != nil {
		return 0
	}
	return epoch
}
