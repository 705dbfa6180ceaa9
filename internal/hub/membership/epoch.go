package membership

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// Kubernetes checks the rights of a watch when it begins and never again. So that a watch which outlives a revocation sees nothing of what is delivered
// later, nothing is ever delivered into the namespace of a member that was revoked: the record counts its revocations, its epoch, and in each epoch the
// member has a namespace of its own.

// Revoked returns whether the access of a record's member is revoked. A value that somebody misspelled revokes, too.
func Revoked(record client.Object) bool {
	value, set := record.GetAnnotations()[clusterv1beta1.AnnotationRevoked]
	return set && value != strconv.FormatBool(false)
}

// maxEpoch is the largest epoch that the hub counts to. A record has a larger one only if somebody else has written it.
const maxEpoch = 1 << 30

// Epoch is how often the member of a record was revoked.
func Epoch(record client.Object) int {
	epoch, err := strconv.Atoi(record.GetAnnotations()[clusterv1beta1.AnnotationMemberEpoch])
	if err != nil || epoch < 0 {
		return 0
	}
	return epoch
}

// Countable reports whether the epoch of a record can be counted further, so that the next one has another namespace.
func Countable(record client.Object) bool { return Epoch(record) < maxEpoch }

// BeginEpoch changes a record so that its member has another namespace from then on. After an epoch that cannot be
// counted further the hub begins anew, and the caller has made sure that nothing is left of that epoch.
func BeginEpoch(record client.Object) {
	next := 1
	if Countable(record) {
		next = Epoch(record) + 1
	}
	annotations := map[string]string{}
	for key, value := range record.GetAnnotations() {
		annotations[key] = value
	}
	annotations[clusterv1beta1.AnnotationMemberEpoch] = strconv.Itoa(next)
	record.SetAnnotations(annotations)
}

// Former returns the member as it was before it was last revoked, and false if it never was.
func Former(record client.Object) (Member, bool) {
	m := Of(record).at(max(0, Epoch(record)-1))
	m.ending = true
	return m, Epoch(record) > 0
}

// at is the member in an epoch.
func (m Member) at(epoch int) Member {
	m.Epoch = epoch
	if m.Workspace == "" {
		m.Namespace = naming.MemberClusterNamespaceAt(epoch, m.Name)
	} else {
		m.Namespace = naming.MemberNamespaceAt(epoch, m.Workspace, m.Name)
	}
	return m
}

// Registrable returns whether an agent may be granted the identity of a Cluster as far as the hub has prepared it. A Cluster that was revoked shows its
// namespace only after that.
func Registrable(cluster *fleet.Cluster) bool {
	return cluster.Status.Namespace != "" || Epoch(cluster) > 0
}

// EndAccess takes away at once whatever the identity of a member may do, and the values that it could read. Objects of these names that the hub did not
// make for the member are left alone.
func (m Member) EndAccess(ctx context.Context, c client.Client, live client.Reader) error {
	if m.Workspace == "" {
		ended := append([]client.Object{Rights{Member: m}.Binding(), m.Account()}, m.reconnectAccess()...)
		return kube.Delete(ctx, c, ended...) // the identity is the admin's
	}
	every := Identity{Member: m, Kind: Legacy, Shared: true}
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
