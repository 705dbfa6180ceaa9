package delivery

import (
	"strconv"
	"strings"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
)

// RecipientLabels returns the labels with the recipient of an object. As in placements, a
// MemberCluster has its name, a Cluster workspace/name. The epoch is the number of revocations of
// the member.
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

// EpochLabels returns the label with the number of times the recipient was revoked; none if it
// never was.
func EpochLabels(epoch int) map[string]string {
	if epoch == 0 {
		return map[string]string{}
	}
	return map[string]string{clusterv1beta1.AnnotationMemberEpoch: strconv.Itoa(epoch)}
}

// OtherRecipient names the member in the labels of an object in a member namespace, if it is not
// the member with the given report. Otherwise it returns "".
//
// The name and epoch of a member determine its namespace, so the labels prove the member. An object
// without labels belongs to the member of its namespace, because earlier hubs did not label Works.
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
// epoch. The hub chooses one of two forms when the epoch begins.
func isNamespaceOf(epoch int, workspace, cluster, namespace string) bool {
	return naming.MemberNamespaceAt(epoch, workspace, cluster) == namespace ||
		naming.LongMemberNamespaceAt(epoch, workspace, cluster) == namespace
}

// maxFormer bounds the number of compared former namespaces of a member.
const maxFormer = 64

// Inherits reports whether the recipient in the labels, with the given report, had a member
// namespace before it was revoked. Objects delivered from there still belong to the recipient.
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

// epochOf returns the number of times the recipient in the labels was revoked.
func epochOf(labels map[string]string) int {
	epoch, err := strconv.Atoi(labels[clusterv1beta1.AnnotationMemberEpoch])
	if err != nil {
		return 0
	}
	return epoch
}
