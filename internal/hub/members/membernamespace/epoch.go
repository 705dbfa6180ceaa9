package membernamespace

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// Kubernetes checks the rights of a watch at its start and never again. A watch from before a
// revocation must not see later deliveries. The hub therefore never again delivers into the
// namespace of a revoked member. The membership object counts its revocations, its epoch, and the
// member has another namespace in each epoch.

// BeginEpoch gives the member of a membership object another namespace. After the last countable
// epoch it restarts the count; the caller makes sure that nothing of the earlier epoch is left.
//
// The report is from the agent of the ending epoch; nil if there is none. If the agent knows names
// with a long digest, the new namespace has one. No tenant can then find a Cluster with the same
// namespace name. Without a report the form of the name stays.
func BeginEpoch(record client.Object, report *clusterv1beta1.InternalMemberCluster) {
	next := 1
	if membership.Countable(record) {
		next = membership.Epoch(record) + 1
	}
	annotations := map[string]string{}
	for key, value := range record.GetAnnotations() {
		annotations[key] = value
	}
	annotations[clusterv1beta1.AnnotationMemberEpoch] = strconv.Itoa(next)
	long := membership.LongDigests(record)
	if _, isCluster := record.(*fleet.Cluster); isCluster {
		annotations[clusterv1beta1.AnnotationLongDigests] = listLongDigests(long, membership.Epoch(record), next, report)
	}
	if annotations[clusterv1beta1.AnnotationLongDigests] == "" {
		delete(annotations, clusterv1beta1.AnnotationLongDigests)
	}
	record.SetAnnotations(annotations)
}

// listLongDigests returns the list for the next epoch. Of the earlier epochs, only the last one is
// still needed, until its namespace is gone.
func listLongDigests(e membership.Epochs, last, next int, report *clusterv1beta1.InternalMemberCluster) string {
	var list []string
	if e.Has(last) && next == last+1 {
		list = append(list, strconv.Itoa(last))
	}
	known, reported := knowsLongDigests(report)
	if known || !reported && e.Has(last) {
		list = append(list, strconv.Itoa(next))
	}
	return strings.Join(list, ",")
}

// knowsLongDigests reports whether the agent behind a report knows names with a long digest, and
// whether the report has any information about this.
func knowsLongDigests(report *clusterv1beta1.InternalMemberCluster) (known, reported bool) {
	if report == nil || report.Status.AgentStatus == nil || Oversized(report) != "" {
		return false, false
	}
	return slices.Contains(report.Status.Features, clusterv1beta1.FeatureLongDigest), true
}

// Unnamed reports whether the agent behind a report does not know the name of the member namespace.
// Such an agent treats deliveries there as another member's, and deploys none of them.
func (m Member) Unnamed(report *clusterv1beta1.InternalMemberCluster) bool {
	known, reported := knowsLongDigests(report)
	return m.long.Has(m.Epoch) && reported && !known
}

// Former returns the member as before its last revocation, and false if it was never revoked.
func Former(record client.Object) (Member, bool) {
	m := Of(record).at(max(0, membership.Epoch(record)-1))
	m.ending = true
	return m, membership.Epoch(record) > 0
}

// maxListed bounds the number of listed epochs to read. The hub lists two.
const maxListed = 8

// Disused returns the member once for each namespace no longer in use. These are the namespace of
// the previous epoch, and any left by a hub of an earlier version. Such a hub, after a temporary
// downgrade, does not know names with a long digest. It deletes no namespace with such a name, and
// gives the member another one.
func Disused(record client.Object) (disused []Member) {
	present := Of(record)
	if former, ok := Former(record); ok {
		disused = append(disused, former)
	}
	listed := strings.Split(string(present.long), ",")
	for _, text := range listed[:min(len(listed), maxListed)] {
		epoch, err := strconv.Atoi(text)
		if err != nil || epoch < 1 || epoch > present.Epoch {
			continue
		}
		long, short := present.at(epoch), present.at(epoch)
		short.Namespace = naming.MemberNamespaceAt(epoch, present.Workspace, present.Name)
		for _, m := range []Member{long, short} {
			isKnown := slices.ContainsFunc(disused, func(one Member) bool { return one.Namespace == m.Namespace })
			if m.ending = true; m.Namespace != present.Namespace && !isKnown {
				disused = append(disused, m)
			}
		}
	}
	return disused
}

// at returns the member in an epoch.
func (m Member) at(epoch int) Member {
	m.Epoch, m.Namespace = epoch, membership.NamespaceAt(m.Workspace, m.Name, epoch, m.long)
	return m
}

// Registrable reports whether the hub has prepared a Cluster for the grant of an identity. A
// revoked Cluster shows its namespace only after the grant.
func Registrable(cluster *fleet.Cluster) bool {
	return cluster.Status.Namespace != "" || membership.Epoch(cluster) > 0
}

// EndAccess removes at once all rights of the member's identity, and the values in its reach. It
// leaves alone objects of these names from other creators.
func (m Member) EndAccess(ctx context.Context, c client.Client, live client.Reader) error {
	if m.Workspace == "" {
		ended := append([]client.Object{Rights{Member: m}.Binding(), m.Account()}, m.reconnectAccess()...)
		return kube.Delete(ctx, c, ended...) // the identity is the administrator's
	}
	if err := kube.Delete(ctx, c, slices.Concat(m.every(), []client.Object{m.Account()}, m.tokenSecrets())...); err != nil {
		return err
	}
	values := &metav1.PartialObjectMetadataList{}
	values.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := live.List(ctx, values, client.InNamespace(m.Namespace), client.MatchingLabels{fleet.LabelManaged: "true"}); err != nil {
		return fmt.Errorf("listing the Secrets of %s: %w", m.Namespace, err)
	}
	for i := range values.Items {
		secret := &values.Items[i]
		secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		if err := kube.DeleteByUID(ctx, c, secret); err != nil {
			return err
		}
	}
	return nil
}
