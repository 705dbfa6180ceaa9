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

// Kubernetes checks the rights of a watch when it begins and never again. So that a watch which outlives a revocation sees nothing of what is delivered
// later, nothing is ever delivered into the namespace of a member that was revoked: the record counts its revocations, its epoch, and in each epoch the
// member has a namespace of its own.

// BeginEpoch changes a record so that its member has another namespace from then on. After an epoch that cannot be
// counted further the hub begins anew, and the caller has made sure that nothing is left of that epoch.
//
// The report is that of the agent in the epoch that ends; nil if there is none. If that agent knows names
// with a long digest, the new namespace has one, so that no tenant finds a Cluster with a namespace of the
// same name. Without a report the form stays.
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

// listLongDigests returns the list for the next epoch. Of the epochs before, only the last one is still needed,
// until its namespace is gone.
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

// knowsLongDigests returns whether the agent behind a report knows names with a long digest, and whether
// the report says anything of that.
func knowsLongDigests(report *clusterv1beta1.InternalMemberCluster) (known, reported bool) {
	if report == nil || report.Status.AgentStatus == nil || Oversized(report) != "" {
		return false, false
	}
	return slices.Contains(report.Status.Features, clusterv1beta1.FeatureLongDigest), true
}

// Unnamed reports whether the agent behind a report does not know the name of the member namespace. Such an
// agent takes what is delivered there for another member's, and deploys nothing of it.
func (m Member) Unnamed(report *clusterv1beta1.InternalMemberCluster) bool {
	known, reported := knowsLongDigests(report)
	return m.long.Has(m.Epoch) && reported && !known
}

// Former returns the member as it was before it was last revoked, and false if it never was.
func Former(record client.Object) (Member, bool) {
	m := Of(record).at(max(0, membership.Epoch(record)-1))
	m.ending = true
	return m, membership.Epoch(record) > 0
}

// maxListed bounds how many of the listed epochs are looked at. The hub lists two.
const maxListed = 8

// Disused returns the member with each namespace that it had and has no longer. Besides the one of the epoch
// before, those are what a hub leaves that does not know names with a long digest, because it was of an
// earlier version for a while: it ends no namespace with such a name, and has the member use another one.
func Disused(record client.Object) (all []Member) {
	present := Of(record)
	if former, ok := Former(record); ok {
		all = append(all, former)
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
			isKnown := slices.ContainsFunc(all, func(one Member) bool { return one.Namespace == m.Namespace })
			if m.ending = true; m.Namespace != present.Namespace && !isKnown {
				all = append(all, m)
			}
		}
	}
	return all
}

// at is the member in an epoch.
func (m Member) at(epoch int) Member {
	m.Epoch, m.Namespace = epoch, membership.NamespaceAt(m.Workspace, m.Name, epoch, m.long)
	return m
}

// Registrable returns whether an agent may be granted the identity of a Cluster as far as the hub has prepared it. A Cluster that was revoked shows its
// namespace only after that.
func Registrable(cluster *fleet.Cluster) bool {
	return cluster.Status.Namespace != "" || membership.Epoch(cluster) > 0
}

// EndAccess takes away at once whatever the identity of a member may do, and the values that it could read. Objects of these names that the hub did not
// make for the member are left alone.
func (m Member) EndAccess(ctx context.Context, c client.Client, live client.Reader) error {
	if m.Workspace == "" {
		ended := append([]client.Object{Rights{Member: m}.Binding(), m.Account()}, m.reconnectAccess()...)
		return kube.Delete(ctx, c, ended...) // the identity is the admin's
	}
	every := Identity{Member: m, Kind: membership.Legacy, Shared: true}
	if err := kube.Delete(ctx, c, slices.Concat(every.grants(), []client.Object{m.Account()}, m.tokenSecrets())...); err != nil {
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
