package access

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/runtime/kubeconfig"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// sourceOf returns the kubeconfig Secret of a member for other tools; empty if it names none.
func sourceOf(record client.Object, system string) types.NamespacedName {
	name := record.GetAnnotations()[fleet.AnnotationAccessSecret]
	cluster, ofCluster := record.(*fleet.Cluster)
	switch {
	case name != "" && !ofCluster:
		return types.NamespacedName{Namespace: system, Name: name}
	case name != "":
		return types.NamespacedName{Namespace: cluster.Namespace, Name: name}
	case ofCluster && cluster.Spec.KubeConfigSecret != "":
		return kubeconfig.SecretOf(cluster)
	}
	return types.NamespacedName{}
}

// observe gathers the common inputs for all tools. It reads the kubeconfig only while a tool is on,
// and only for a member with a kubeconfig.
func (c *Controller) observe(ctx context.Context, key types.NamespacedName, access settings.Access) (member, error) {
	m := member{key: key}
	var err error
	if m.record, err = c.record(ctx, key); err != nil {
		return member{}, err
	}
	present := &metav1.PartialObjectMetadataList{}
	present.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := c.Client.List(ctx, present, client.MatchingFields{byMember: key.String()}); err != nil {
		return member{}, fmt.Errorf("listing the Secrets for other tools: %w", err)
	}
	m.present = present.Items
	if m.record == nil || access.ArgoCD == "" && access.Flux == "" && access.Inventory == "" {
		return m, nil
	}
	if m.source = sourceOf(m.record, c.SystemNamespace); m.source.Name != "" {
		err = c.read(ctx, &m)
	}
	return m, err
}

// record returns the membership object; nil if it is gone, leaves, has no access, or belongs to
// another manager.
func (c *Controller) record(ctx context.Context, key types.NamespacedName) (client.Object, error) {
	var record client.Object = &clusterv1beta1.MemberCluster{}
	if key.Namespace != "" {
		record = &fleet.Cluster{}
	}
	if err := c.Client.Get(ctx, key, record); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading member %s: %w", key, err)
	}
	if record.GetUID() == "" || record.GetDeletionTimestamp() != nil || membership.Revoked(record) ||
		record.GetLabels()[fleet.LabelClusterManagement] != "" {
		return nil, nil //nolint:nilnil // it is as if there were none
	}
	return record, nil
}

// read reads and checks the kubeconfig of a member.
func (c *Controller) read(ctx context.Context, m *member) error {
	var secret corev1.Secret
	if !m.mayName() {
		return nil
	}
	if err := c.Live.Get(ctx, m.source, &secret); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Secret %s: %w", m.source, err)
	}
	cluster, ofCluster := m.record.(*fleet.Cluster)
	if secret.UID == "" || ofCluster && !kubeconfig.Consents(&secret, cluster) {
		return nil
	}
	m.found = true
	for name := range strings.SplitSeq(secret.Annotations[fleet.AnnotationAccessFor], ",") {
		m.consent = append(m.consent, strings.TrimSpace(name))
	}
	parsed, fault := kubeconfig.Parse(m.source.String(), secret.Data[kubeconfig.Key], c.Clock.Now())
	if m.kubeconfig = parsed; fault == nil {
		m.problem = c.refusal(parsed)
	} else {
		m.problem = fault.Message
	}
	return nil
}

// mayName reports whether a Secret can have the name, and be in the namespace, of the source.
func (m *member) mayName() bool {
	cluster, ofCluster := m.record.(*fleet.Cluster)
	return len(validation.IsDNS1123Subdomain(m.source.Name)) == 0 && (!ofCluster || kubeconfig.CheckSecret(cluster, m.source) == nil)
}

// target returns the fault of the namespace for a tool's Secrets, or "". Users of a workspace, and
// the agent of a member, read Secrets in their namespace.
func (c *Controller) target(ctx context.Context, namespace string) (string, error) {
	own := c.Config.Current().InventoryNamespaces()
	have := kube.CoreMetadata("Namespace")
	if err := c.Live.Get(ctx, types.NamespacedName{Name: namespace}, have); apierrors.IsNotFound(err) {
		return "namespace " + namespace + " does not exist: create it, or correct the value access of the chart fleet", nil
	} else if err != nil {
		return "", fmt.Errorf("reading namespace %s: %w", namespace, err)
	}
	closed := namespace == c.SystemNamespace || namespace == naming.RegistrationNamespace(c.SystemNamespace) ||
		have.Labels[fleet.LabelManaged] == "true" && !slices.Contains(own, namespace)
	for _, list := range []client.ObjectList{&fleet.ClusterList{}, &fleet.ClusterRegistrationTokenList{}} {
		if err := c.Client.List(ctx, list, client.InNamespace(namespace), client.Limit(1)); err != nil {
			return "", fmt.Errorf("looking for Clusters and tokens in namespace %s: %w", namespace, err)
		}
		closed = closed || !isEmpty(list)
	}
	if closed {
		return "namespace " + namespace + " belongs to the fleet, to a member or to a workspace, where others read Secrets: " +
			"correct the value access of the chart fleet", nil
	}
	return "", nil
}

func isEmpty(list client.ObjectList) bool {
	switch list := list.(type) {
	case *fleet.ClusterList:
		return len(list.Items) == 0
	case *fleet.ClusterRegistrationTokenList:
		return len(list.Items) == 0
	}
	return false
}
