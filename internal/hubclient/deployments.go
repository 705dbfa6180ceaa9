package hubclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/term"
	"github.com/muster-fleet/muster/internal/kubeclient"
	"github.com/muster-fleet/muster/internal/naming"
)

// Deployments are the BundleDeployments of the member namespace.
type Deployments = kubeclient.Resource[*fleet.BundleDeployment, *fleet.BundleDeploymentList]

// Deployments returns the client for the BundleDeployments of the member.
func (m *Member) Deployments() (*Deployments, error) {
	return kubeclient.Of[fleet.BundleDeployment, fleet.BundleDeploymentList](m.connection, BundleDeployments, m.Namespace)
}

// Content reads a Content.
func (m *Member) Content(ctx context.Context, name string) (*fleet.Content, error) {
	return read[fleet.Content, fleet.ContentList](ctx, m, fleet.GroupVersion.WithResource("contents"), "", name)
}

// Secret reads a Secret of the member namespace.
func (m *Member) Secret(ctx context.Context, name string) (*corev1.Secret, error) {
	return read[corev1.Secret, corev1.SecretList](ctx, m, corev1.SchemeGroupVersion.WithResource("secrets"), m.Namespace, name)
}

// ConfigMap reads a ConfigMap of the member namespace.
func (m *Member) ConfigMap(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	return read[corev1.ConfigMap, corev1.ConfigMapList](ctx, m, corev1.SchemeGroupVersion.WithResource("configmaps"), m.Namespace, name)
}

func read[T, L any, O interface {
	*T
	kubeclient.Object
}, P interface {
	*L
	runtime.Object
}](ctx context.Context, m *Member, resource schema.GroupVersionResource, namespace, name string) (O, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	objects, err := kubeclient.Of[T, L, O, P](m.connection, resource, namespace)
	if err != nil {
		return nil, err
	}
	return objects.Get(ctx, name, metav1.GetOptions{})
}

// Status reads the status of a BundleDeployment or Work of the member namespace.
func (m *Member) Status(ctx context.Context, resource schema.GroupVersionResource, name string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	objects, err := m.connection.REST(resource.GroupVersion())
	if err != nil {
		return err
	}
	text, err := objects.Get().Namespace(m.Namespace).Resource(resource.Resource).Name(name).SetHeader("Accept",
		"application/json").Do(ctx).Raw()
	if err != nil {
		return err
	}
	var object struct {
		Status json.RawMessage `json:"status"`
	}
	if err = json.Unmarshal(text, &object); err == nil && len(object.Status) > 0 {
		err = json.Unmarshal(object.Status, into)
	}
	if err != nil {
		return fmt.Errorf("decoding %s %s/%s: %w", resource.Resource, m.Namespace, name, err)
	}
	return nil
}

// PatchStatus merges a patch into the status of a BundleDeployment or Work of the member namespace.
func (m *Member) PatchStatus(ctx context.Context, resource schema.GroupVersionResource, name string, patch []byte) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	objects, err := m.connection.REST(resource.GroupVersion())
	if err != nil {
		return err
	}
	return objects.Patch(types.MergePatchType).Namespace(m.Namespace).Resource(resource.Resource).Name(name).SubResource("status").
		Param("fieldManager", fieldManager).Body(patch).Do(ctx).Error()
}

// Removable verifies the cause of the deletion of an object of this kind in the member namespace.
// The object must have been deleted on its own, not together with its whole kind or with the
// member.
func (m *Member) Removable(ctx context.Context, report types.UID, kind schema.GroupVersionResource) error {
	if err := m.Serves(ctx, kind); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if _, err := m.stays(ctx, report); err != nil {
		return err
	}
	return m.namespaceStays(ctx)
}

// namespaceStays returns an error if the member namespace is being deleted.
func (m *Member) namespaceStays(ctx context.Context) error {
	var namespace corev1.Namespace
	switch err := m.core.Get().Resource("namespaces").Name(m.Namespace).Do(ctx).Into(&namespace); {
	case apierrors.IsForbidden(err): // by a hub of an earlier version; such a hub lets its members request tokens
		return m.takesMore(ctx)
	case err != nil:
		return fmt.Errorf("reading the member namespace %s: %w", m.Namespace, err)
	case namespace.DeletionTimestamp != nil:
		return fmt.Errorf("the member namespace %s is being deleted", m.Namespace)
	}
	return nil
}

// stays returns the report of the member, or an error if the member leaves the fleet.
func (m *Member) stays(ctx context.Context, report types.UID) (*clusterv1beta1.InternalMemberCluster, error) {
	found, err := m.Reports.Get(ctx, m.Name, metav1.GetOptions{})
	switch {
	case err != nil:
		return nil, err
	case found.UID != report:
		return nil, fmt.Errorf("the member namespace %s was replaced", m.Namespace)
	case found.DeletionTimestamp != nil, found.Spec.State == clusterv1beta1.ClusterStateLeave:
		return nil, fmt.Errorf("the member leaves the fleet")
	}
	if refusal := term.Refusal(m.obeyed.Load(), found.Spec.HubTerm); refusal != "" {
		return nil, errors.New(refusal)
	}
	return found, nil
}

// Since returns the creation time of the member's account on the hub. It stays the same if an agent
// continues with the credential of an earlier agent.
func (m *Member) Since(ctx context.Context) (time.Time, error) {
	account, err := read[corev1.ServiceAccount, corev1.ServiceAccountList](
		ctx, m, corev1.SchemeGroupVersion.WithResource("serviceaccounts"), m.Namespace, naming.MemberServiceAccount)
	if err != nil {
		return time.Time{}, fmt.Errorf("reading ServiceAccount %s/%s: %w", m.Namespace, naming.MemberServiceAccount, err)
	}
	return account.CreationTimestamp.Time, nil
}

// takesMore returns an error if the member namespace is being deleted: creating an object fails in
// such a namespace, even in a dry run.
func (m *Member) takesMore(ctx context.Context) error {
	err := m.core.Post().Namespace(m.Namespace).Resource("serviceaccounts").Name(naming.MemberServiceAccount).SubResource("token").
		Param("dryRun", metav1.DryRunAll).
		Body(&authenticationv1.TokenRequest{}).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("the member namespace %s takes nothing new: %w", m.Namespace, err)
	}
	return nil
}

// The kinds in a member namespace with the objects placed on the member.
var (
	BundleDeployments = fleet.GroupVersion.WithResource("bundledeployments")
	Works             = placement.GroupVersion.WithResource("works")
)

// FollowReport keeps mirror equal to the report until ctx ends.
func (m *Member) FollowReport(ctx context.Context, mirror *kubeclient.Mirror[*clusterv1beta1.InternalMemberCluster]) {
	kubeclient.FollowCustom(ctx, m.connection, mirror, m.Reports, m.Name)
}

// FollowPlaced keeps store equal to the metadata of one of these kinds until ctx ends.
func (m *Member) FollowPlaced(ctx context.Context, resource schema.GroupVersionResource, store cache.ReflectorStore, outcome func(error)) {
	if err := kubeclient.FollowMetadata(ctx, m.connection, resource, m.Namespace, store, outcome); err != nil {
		outcome(err)
	}
}
