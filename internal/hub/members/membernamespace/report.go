package membernamespace

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// maxReport is the maximum size of a report's status in the hub, in bytes of JSON. Muster's agent
	// writes a few thousand.
	maxReport = 256 << 10
	// maxSentence bounds a message in a larger report.
	maxSentence = 512
	// annotationOversized is the original size of an oversized report. The annotation exists only in
	// the cache.
	annotationOversized = "muster/report-bytes"
)

// ReadReport reads the report of a member; nil if there is none.
func (m Member) ReadReport(ctx context.Context, reader client.Reader) (*clusterv1beta1.InternalMemberCluster, error) {
	var report clusterv1beta1.InternalMemberCluster
	err := reader.Get(ctx, types.NamespacedName{Namespace: m.Namespace, Name: m.Name}, &report)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading InternalMemberCluster %s/%s: %w", m.Namespace, m.Name, err)
	}
	return &report, nil
}

// ReadCredential reads the credential status from a member's membership object; nil if there is no
// status or no object.
func (m Member) ReadCredential(ctx context.Context, reader client.Reader) (*clusterv1beta1.CredentialStatus, error) {
	var cluster fleet.Cluster
	var mc clusterv1beta1.MemberCluster
	record := client.Object(&cluster)
	if m.Workspace == "" {
		record = &mc
	}
	if err := reader.Get(ctx, types.NamespacedName{Namespace: m.Workspace, Name: m.Name}, record); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading the membership object of %s: %w", m.Namespace, err)
	}
	if m.Workspace == "" {
		return mc.Status.Credential, nil
	}
	return (*clusterv1beta1.CredentialStatus)(cluster.Status.Credential), nil
}

// ForgetKey removes the key and the credential of the agent from the status of a report.
func (m Member) ForgetKey(ctx context.Context, c client.Client, report *clusterv1beta1.InternalMemberCluster) error {
	if report == nil || len(report.Status.AgentKey) == 0 {
		return nil
	}
	patch := fmt.Sprintf(`{"metadata":{"uid":%q},"status":{"agentKey":null,"credential":null}}`, report.UID)
	err := c.Status().Patch(ctx, report.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)), kube.FieldOwner)
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("forgetting the key in the report of %s: %w", m.Namespace, err)
	}
	return nil
}

// Join returns the spec of the report of a member in the fleet.
func Join(period time.Duration, hub *clusterv1beta1.HubAddress, term *clusterv1beta1.HubTerm) clusterv1beta1.InternalMemberClusterSpec {
	return clusterv1beta1.InternalMemberClusterSpec{
		State: clusterv1beta1.ClusterStateJoin, HeartbeatPeriodSeconds: int32(period.Seconds()), Hub: hub, HubTerm: term,
	}
}

// Ask writes the spec into the report of an agent, if it differs. If the report is gone, the next
// reconcile creates another one.
func Ask(ctx context.Context, c client.Client, report *clusterv1beta1.InternalMemberCluster,
	spec clusterv1beta1.InternalMemberClusterSpec) error {
	if equality.Semantic.DeepEqual(report.Spec, spec) {
		return nil
	}
	before := report.DeepCopy()
	report.Spec = spec
	if err := c.Patch(ctx, report, client.MergeFrom(before), kube.FieldOwner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("adjusting InternalMemberCluster %s/%s: %w", report.Namespace, report.Name, err)
	}
	return nil
}

// Bound reduces an oversized report to the conditions Joined and Healthy. No member can then fill
// the hub's memory or make its membership object too large to write.
func Bound(report *clusterv1beta1.InternalMemberCluster) {
	delete(report.Annotations, annotationOversized)
	text, err := json.Marshal(report.Status)
	if err != nil || len(text) <= maxReport {
		return
	}
	metav1.SetMetaDataAnnotation(&report.ObjectMeta, annotationOversized, strconv.Itoa(len(text)))
	kept := clusterv1beta1.InternalMemberClusterStatus{AgentVersion: kube.Clip(report.Status.AgentVersion, maxSentence)}
	if agent := clusterv1beta1.FindAgent(report.Status.AgentStatus, clusterv1beta1.MemberAgent); agent != nil {
		one := clusterv1beta1.AgentStatus{Type: agent.Type, LastReceivedHeartbeat: agent.LastReceivedHeartbeat}
		for _, kind := range []string{clusterv1beta1.ConditionJoined, clusterv1beta1.ConditionHealthy} {
			if condition := membership.AgentCondition(report, kind); condition != nil {
				short := *condition
				short.Message = kube.Clip(condition.Message, maxSentence)
				one.Conditions = append(one.Conditions, short)
			}
		}
		kept.AgentStatus = []clusterv1beta1.AgentStatus{one}
	}
	report.Status = kept
}

// Oversized returns a message about an oversized report, or "".
func Oversized(report *clusterv1beta1.InternalMemberCluster) string {
	if report == nil || report.Annotations[annotationOversized] == "" {
		return ""
	}
	return fmt.Sprintf("the agent's report InternalMemberCluster %s/%s has %s bytes, and the limit is %d: the hub reads only whether the "+
		"agent has joined and is healthy; disable the property provider of another agent, or revoke the member",
		report.Namespace, report.Name, report.Annotations[annotationOversized], maxReport)
}

// shown returns the annotations of a report without the hub's note of removed releases.
func shown(report *clusterv1beta1.InternalMemberCluster) map[string]string {
	annotations := maps.Clone(report.Annotations)
	delete(annotations, clusterv1beta1.AnnotationRemoved)
	return annotations
}

// MoreThanBeats reports whether a report has changed beyond the times of heartbeats.
func MoreThanBeats(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*clusterv1beta1.InternalMemberCluster), e.ObjectNew.(*clusterv1beta1.InternalMemberCluster)
	if before.Generation != after.Generation || !equality.Semantic.DeepEqual(shown(before), shown(after)) ||
		!equality.Semantic.DeepEqual(before.Finalizers, after.Finalizers) {
		return true
	}
	was, is := before.Status.DeepCopy(), after.Status.DeepCopy()
	for _, status := range []*clusterv1beta1.InternalMemberClusterStatus{was, is} {
		for i := range status.AgentStatus {
			status.AgentStatus[i].LastReceivedHeartbeat = metav1.Time{}
		}
	}
	return !equality.Semantic.DeepEqual(was, is)
}
