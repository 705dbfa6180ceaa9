package hubclient

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/kubeclient"
	"github.com/muster-fleet/muster/internal/naming"
)

// fieldManager is the field manager of the agent's writes.
const fieldManager = "muster-agent"

// Reports are InternalMemberClusters; the agent has one.
type Reports = kubeclient.Resource[*clusterv1beta1.InternalMemberCluster, *clusterv1beta1.InternalMemberClusterList]

// Member is the agent's accessible part of the hub: its member namespace.
type Member struct {
	*Hub
	// Namespace is the member namespace, Name the name of the report in it.
	Namespace, Name string
	// Reports are the reports of the member namespace.
	Reports *Reports

	leases *kubeclient.Resource[*coordinationv1.Lease, *coordinationv1.LeaseList]
	core   rest.Interface
	// report is the required UID of the report; empty if any UID is accepted.
	report types.UID
	// obeyed is the term of the hub that the member obeys; see Obey.
	obeyed atomic.Pointer[clusterv1beta1.HubTerm]
}

// Obey makes the member trust no confirmation of a deletion by a hub with a lower term.
func (m *Member) Obey(term *clusterv1beta1.HubTerm) { m.obeyed.Store(term) }

// Member prepares access to a member namespace.
func (h *Hub) Member(namespace, name string) (*Member, error) {
	m := &Member{Hub: h, Namespace: namespace, Name: name}
	var err error
	if m.Reports, err = kubeclient.Of[clusterv1beta1.InternalMemberCluster, clusterv1beta1.InternalMemberClusterList](
		h.connection, clusterv1beta1.GroupVersion.WithResource("internalmemberclusters"), namespace); err != nil {
		return nil, err
	}
	if m.leases, err = kubeclient.Of[coordinationv1.Lease, coordinationv1.LeaseList](
		h.connection, coordinationv1.SchemeGroupVersion.WithResource("leases"), namespace); err != nil {
		return nil, err
	}
	m.core, err = h.connection.REST(corev1.SchemeGroupVersion)
	return m, err
}

// Lease is the state of a member's heartbeat: its holder and its version.
type Lease struct {
	// Holder is empty before the first heartbeat.
	Holder string
	// Version changes with every heartbeat and every other change, Renewed with every heartbeat.
	Version, Renewed string
}

func readLease(lease *coordinationv1.Lease) Lease {
	read := Lease{Version: string(lease.UID) + "/" + lease.ResourceVersion}
	if holder := lease.Spec.HolderIdentity; holder != nil && lease.Spec.RenewTime != nil {
		read.Holder, read.Renewed = *holder, lease.Spec.RenewTime.String()
	}
	return read
}

// Lease reads the Lease.
func (m *Member) Lease(ctx context.Context) (Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	lease, err := m.leases.Get(ctx, naming.HeartbeatLease, metav1.GetOptions{})
	if err != nil {
		return Lease{}, err
	}
	return readLease(lease), nil
}

// Beat renews the Lease. If since has a version, and the Lease has changed after it, the hub
// refuses with a conflict.
func (m *Member) Beat(ctx context.Context, holder string, now time.Time, since Lease) (Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	metadata := map[string]any{"managedFields": kube.Untracked}
	if uid, version, ok := strings.Cut(since.Version, "/"); ok {
		metadata["uid"], metadata["resourceVersion"] = uid, version
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": metadata, "spec": map[string]any{"renewTime": metav1.NewMicroTime(now), "holderIdentity": holder},
	})
	if err != nil {
		return Lease{}, fmt.Errorf("encoding the heartbeat: %w", err)
	}
	lease, err := m.leases.Patch(ctx, naming.HeartbeatLease, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil {
		return Lease{}, err
	}
	return readLease(lease), nil
}

// MarkWaiting notes on the Lease that an agent waits for its holder, with the time.
func (m *Member) MarkWaiting(ctx context.Context, waiter string, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]string{clusterv1beta1.AnnotationWaitingAgent: waiter + " " + now.UTC().Format(time.RFC3339Nano)},
	}})
	if err != nil {
		return fmt.Errorf("encoding the mark: %w", err)
	}
	_, err = m.leases.Patch(ctx, naming.HeartbeatLease, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	return err
}

// ExpectReport makes the hub refuse later reports unless the report has this UID.
func (m *Member) ExpectReport(uid types.UID) { m.report = uid }

// Report applies the status of the report. It removes fields the agent no longer reports.
func (m *Member) Report(ctx context.Context, status clusterv1beta1.InternalMemberClusterStatus) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	metadata := map[string]any{"name": m.Name, "namespace": m.Namespace}
	if m.report != "" {
		metadata["uid"] = m.report
	}
	patch, err := json.Marshal(map[string]any{
		"apiVersion": clusterv1beta1.GroupVersion.String(),
		"kind":       "InternalMemberCluster",
		"metadata":   metadata,
		"status":     status,
	})
	if err != nil {
		return fmt.Errorf("encoding the report: %w", err)
	}
	force := true
	_, err = m.Reports.Patch(ctx, m.Name, types.ApplyPatchType, patch,
		metav1.PatchOptions{FieldManager: fieldManager, Force: &force}, "status")
	return err
}

// ReportTerm reports only the term of the hub that the member obeys.
func (m *Member) ReportTerm(ctx context.Context, obeyed *clusterv1beta1.HubTerm) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"hubTerm": obeyed}})
	if err != nil {
		return fmt.Errorf("encoding the term: %w", err)
	}
	_, err = m.Reports.Patch(ctx, m.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager}, "status")
	return err
}

// RemoveReported removes fields of another agent from the report, named by JSON pointers (RFC
// 6901). The hub refuses if the report has changed since this resourceVersion.
func (m *Member) RemoveReported(ctx context.Context, resourceVersion string, pointers []string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	operations := []map[string]any{{"op": "test", "path": "/metadata/resourceVersion", "value": resourceVersion}}
	for _, pointer := range pointers {
		operations = append(operations, map[string]any{"op": "remove", "path": pointer})
	}
	patch, err := json.Marshal(operations)
	if err != nil {
		return fmt.Errorf("encoding what to remove from the report: %w", err)
	}
	_, err = m.Reports.Patch(ctx, m.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: fieldManager}, "status")
	return err
}

// RequestToken requests another token of the agent's own account from the hub, valid for life.
func (m *Member) RequestToken(ctx context.Context, life time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	seconds := int64(life.Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	var answer authenticationv1.TokenRequest
	err := m.core.Post().Namespace(m.Namespace).Resource("serviceaccounts").Name(naming.MemberServiceAccount).
		SubResource("token").Body(request).Do(ctx).Into(&answer)
	if err != nil {
		return "", err
	}
	if answer.Status.Token == "" {
		return "", fmt.Errorf("the hub answered without a token")
	}
	return answer.Status.Token, nil
}
