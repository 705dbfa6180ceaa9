// Package membership holds the knowledge about a Cluster or MemberCluster shared by the hub and the
// user interfaces. It covers the status, in the same words for both, the epoch, and the name of the
// member namespace.
//
// Membership reads objects, and writes none.
package membership

import (
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
)

// Revoked reports whether a member's access is revoked. A misspelled value revokes, too.
func Revoked(record client.Object) bool {
	value, set := record.GetAnnotations()[clusterv1beta1.AnnotationRevoked]
	return set && value != strconv.FormatBool(false)
}

// MaxEpoch is the largest epoch in the hub's count. Only another writer can set a larger one.
const MaxEpoch = 1 << 30

// Epoch returns the number of revocations of a member.
func Epoch(record client.Object) int {
	epoch, err := strconv.Atoi(record.GetAnnotations()[clusterv1beta1.AnnotationMemberEpoch])
	if err != nil || epoch < 0 {
		return 0
	}
	return epoch
}

// Countable reports whether the epoch can increase. The next epoch then has another namespace.
func Countable(record client.Object) bool { return Epoch(record) < MaxEpoch }

// Epochs lists epochs, separated by commas.
type Epochs string

// LongDigests returns the epochs with a long digest in the name of their member namespace.
func LongDigests(record client.Object) Epochs {
	return Epochs(record.GetAnnotations()[clusterv1beta1.AnnotationLongDigests])
}

// Has reports whether an epoch is listed.
func (e Epochs) Has(epoch int) bool {
	return slices.Contains(strings.Split(string(e), ","), strconv.Itoa(epoch))
}

// Namespace returns the name of the member namespace of a Cluster or MemberCluster.
func Namespace(record client.Object) string {
	return NamespaceAt(record.GetNamespace(), record.GetName(), Epoch(record), LongDigests(record))
}

// NamespaceAt returns the name of the member namespace in an epoch. A MemberCluster has no
// workspace.
func NamespaceAt(workspace, name string, epoch int, long Epochs) string {
	switch {
	case workspace == "":
		return naming.MemberClusterNamespaceAt(epoch, name)
	case long.Has(epoch):
		return naming.LongMemberNamespaceAt(epoch, workspace, name)
	}
	return naming.MemberNamespaceAt(epoch, workspace, name)
}

// DeliveryNamespace returns the member namespace of a Cluster; "" before the hub has created it,
// and after a revocation until an agent registers. The name is derived, because an agent of Rancher
// Fleet may write the status. status.namespace only reports a ready namespace.
func DeliveryNamespace(cluster *fleet.Cluster) string {
	if cluster.Status.Namespace == "" {
		return ""
	}
	return Namespace(cluster)
}

// ClientID returns the ID an agent must present to become a Cluster. It is spec.clientID, else the
// UID of the Cluster if the hub itself installs the agent. The hub then need not write into the
// spec. Without either no agent matches.
func ClientID(cluster *fleet.Cluster) string {
	if cluster.Spec.ClientID == "" && cluster.Spec.KubeConfigSecret != "" {
		return string(cluster.UID)
	}
	return cluster.Spec.ClientID
}

// JoinsNatively reports whether the hub has created a Cluster for the request of an agent with a
// key, or installs its agent. The hub then writes the first status of the Cluster after the next
// steps of the join.
func JoinsNatively(cluster *fleet.Cluster) bool {
	_, made := cluster.Annotations[fleet.AnnotationCreatedByToken]
	return made && cluster.Annotations[fleet.AnnotationAgentKey] != "" || cluster.Spec.KubeConfigSecret != ""
}

// AnnotationRecordUID on a member namespace is the UID of its Cluster or MemberCluster.
const AnnotationRecordUID = "muster/record-uid"

// RecordOf returns the Cluster of an object in a member namespace, or of the namespace itself.
// Objects of a MemberCluster have an owner reference instead.
func RecordOf(o client.Object) (types.NamespacedName, bool) {
	key := types.NamespacedName{
		Namespace: o.GetAnnotations()[fleet.AnnotationClusterNamespace],
		Name:      o.GetAnnotations()[fleet.LabelCluster],
	}
	return key, key.Name != "" && key.Namespace != ""
}

// HasNamespace reports whether a namespace proves its creation for this Cluster or MemberCluster.
// The UID in its annotation or owner reference decides. A namespace of an earlier version of the
// hub has neither and names the Cluster.
func HasNamespace(record, namespace client.Object) bool {
	if uid, marked := namespace.GetAnnotations()[AnnotationRecordUID]; marked {
		return types.UID(uid) == record.GetUID()
	}
	if owner := metav1.GetControllerOf(namespace); owner != nil {
		return owner.UID == record.GetUID()
	}
	key, ok := RecordOf(namespace)
	return ok && key == client.ObjectKeyFromObject(record)
}
