package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/agent/client"
	"github.com/muster-fleet/muster/internal/naming"
)

// Deployments are the BundleDeployments of the member namespace.
type Deployments = client.Resource[*fleet.BundleDeployment, *fleet.BundleDeploymentList]

// Deployments is the client for what the member is to deploy.
func (m *Member) Deployments() (*Deployments, error) {
	return client.Of(m.connection, fleet.GroupVersion.WithResource("bundledeployments"), m.Namespace,
		func() *fleet.BundleDeployment { return &fleet.BundleDeployment{} },
		func() *fleet.BundleDeploymentList { return &fleet.BundleDeploymentList{} })
}

// Content reads a Content.
func (m *Member) Content(ctx context.Context, name string) (*fleet.Content, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	contents, err := client.Of(m.connection, fleet.GroupVersion.WithResource("contents"), "",
		func() *fleet.Content { return &fleet.Content{} }, func() *fleet.ContentList { return &fleet.ContentList{} })
	if err != nil {
		return nil, err
	}
	return contents.Get(ctx, name, metav1.GetOptions{})
}

// Secret reads a Secret of the member namespace.
func (m *Member) Secret(ctx context.Context, name string) (*corev1.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	secrets, err := client.Of(m.connection, corev1.SchemeGroupVersion.WithResource("secrets"), m.Namespace,
		func() *corev1.Secret { return &corev1.Secret{} }, func() *corev1.SecretList { return &corev1.SecretList{} })
	if err != nil {
		return nil, err
	}
	return secrets.Get(ctx, name, metav1.GetOptions{})
}

// DeploymentStatus reads the status of a BundleDeployment.
func (m *Member) DeploymentStatus(ctx context.Context, name string) (*fleet.BundleDeploymentStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	deployments, err := m.Deployments()
	if err != nil {
		return nil, err
	}
	deployment, err := deployments.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return &deployment.Status, nil
}

// ReportDeployment merges a patch into the status of a BundleDeployment.
func (m *Member) ReportDeployment(ctx context.Context, name string, patch []byte) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	deployments, err := m.Deployments()
	if err != nil {
		return err
	}
	_, err = deployments.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager}, "status")
	return err
}

// Removable makes sure that an object of this kind which is deleted in the member namespace was deleted by itself, and not with its whole kind or
// with the member.
func (m *Member) Removable(ctx context.Context, report types.UID, kind schema.GroupVersionResource) error {
	if err := m.Serves(ctx, kind); err != nil {
		return err
	}
	return m.Stays(ctx, report)
}

// Stays makes sure that the member stays in the fleet, so that what is deleted in its namespace was taken away by itself and not with all
// the rest. The identity of a MemberCluster may not ask for tokens, but read its namespace.
func (m *Member) Stays(ctx context.Context, report types.UID) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := m.stays(ctx, report); err != nil {
		return err
	}
	if !strings.HasPrefix(m.Namespace, naming.MemberClusterNamespace("")) {
		return m.takesMore(ctx)
	}
	var namespace corev1.Namespace
	if err := m.core.Get().Resource("namespaces").Name(m.Namespace).Do(ctx).Into(&namespace); err != nil {
		return fmt.Errorf("reading the member namespace %s: %w", m.Namespace, err)
	}
	if namespace.DeletionTimestamp != nil {
		return fmt.Errorf("the member namespace %s is being deleted", m.Namespace)
	}
	return nil
}

func (m *Member) stays(ctx context.Context, report types.UID) error {
	found, err := m.Reports.Get(ctx, m.Name, metav1.GetOptions{})
	switch {
	case err != nil:
		return err
	case found.UID != report:
		return fmt.Errorf("the member namespace %s was made anew", m.Namespace)
	case found.DeletionTimestamp != nil, found.Spec.State == clusterv1beta1.ClusterStateLeave:
		return fmt.Errorf("the member leaves the fleet")
	}
	return nil
}

// takesMore makes sure that the member namespace is not about to go: nothing can be created in one that is, not even in a dry run.
func (m *Member) takesMore(ctx context.Context) error {
	err := m.core.Post().Namespace(m.Namespace).Resource("serviceaccounts").Name(naming.MemberServiceAccount).SubResource("token").
		Param("dryRun", metav1.DryRunAll).
		Body(&authenticationv1.TokenRequest{}).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("the member namespace %s takes nothing new: %w", m.Namespace, err)
	}
	return nil
}

// WorkConditions reads the conditions of a Work.
func (m *Member) WorkConditions(ctx context.Context, name string) ([]metav1.Condition, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	works, err := m.connection.REST(placement.GroupVersion)
	if err != nil {
		return nil, err
	}
	result := works.Get().Namespace(m.Namespace).Resource("works").Name(name).SetHeader("Accept", "application/json").Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	var work struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := decode(result, &work); err != nil {
		return nil, fmt.Errorf("decoding Work %s/%s: %w", m.Namespace, name, err)
	}
	return work.Status.Conditions, nil
}

// decode reads an answer of a kind that the client does not know.
func decode(result rest.Result, into any) error {
	text, err := result.Raw()
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// ReportWork merges a patch into the status of a Work.
func (m *Member) ReportWork(ctx context.Context, name string, patch []byte) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	works, err := m.connection.REST(placement.GroupVersion)
	if err != nil {
		return err
	}
	return works.Patch(types.MergePatchType).Namespace(m.Namespace).Resource("works").Name(name).SubResource("status").
		Param("fieldManager", fieldManager).Body(patch).Do(ctx).Error()
}

// The kinds in a member namespace that say what is placed on the member.
var (
	BundleDeployments = fleet.GroupVersion.WithResource("bundledeployments")
	Works             = placement.GroupVersion.WithResource("works")
)

// FollowPlaced keeps store equal to the metadata of one of these kinds until ctx ends.
func (m *Member) FollowPlaced(ctx context.Context, resource schema.GroupVersionResource, store cache.ReflectorStore, outcome func(error)) {
	if err := client.FollowMetadata(ctx, m.connection, resource, m.Namespace, store, outcome); err != nil {
		outcome(err)
	}
}
