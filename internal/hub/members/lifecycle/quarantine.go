package lifecycle

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	muster "github.com/muster-fleet/muster/api/muster/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/members/audit"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/kube"
)

// maxQuarantine bounds the users' part of a message.
const maxQuarantine = 512

// quarantine returns the message about a quarantined member.
func quarantine(record client.Object) string {
	return fmt.Sprintf("quarantined%s: the agent may only send heartbeats and reports; deliveries on the cluster stay unchanged, and no new "+
		"ones arrive. To end the quarantine: %s",
		kube.Clip(membership.QuarantinedBy(record), maxQuarantine), membership.EndQuarantine(record))
}

// quarantined returns the condition of a quarantined member; without a reason for all others.
func (o Observed) quarantined() metav1.Condition {
	condition := metav1.Condition{Type: clusterv1beta1.ConditionQuarantined, Status: metav1.ConditionTrue}
	switch {
	case !o.Quarantined:
	case o.QuarantineLeft != "":
		condition.Reason = reasons.Quarantining
		condition.Message = fmt.Sprintf("%s remains, and the hub may not delete it: delete it yourself; the hub checks again within 30 s; %s",
			o.QuarantineLeft, o.Quarantine)
	default:
		condition.Reason, condition.Message = reasons.Quarantined, o.Quarantine
	}
	return condition
}

// QuarantineRetry returns the wait until the next attempt to remove the remaining rights of a
// quarantined member; zero if none is left.
func (o Observed) QuarantineRetry() time.Duration {
	if o.QuarantineLeft == "" {
		return 0
	}
	return revocationRetry
}

// Confine removes rights from the agent of a quarantined member: the given ones, and the right to
// read Contents. It returns the rights still present on the API server. If the member is not
// quarantined, Confine deletes the given rights found in the cache, and lets the member read
// Contents again.
func (c *Controller) Confine(ctx context.Context, o Observed, lapsed ...client.Object) (left string, err error) {
	if !o.Quarantined {
		if err := c.ReadmitContents(ctx, o.Namespace, o.NamespaceUID); err != nil {
			return "", err
		}
		there, err := membernamespace.Known(ctx, c.Client, c.Client.Scheme(), lapsed)
		if err != nil || len(there) == 0 {
			return "", err
		}
		return "", kube.Delete(ctx, c.Client, there...)
	}
	if err := c.WithdrawContents(ctx, o.Namespace); err != nil {
		return "", err
	}
	rights, err := membernamespace.Known(ctx, c.Live, c.Client.Scheme(), lapsed)
	if err != nil || len(rights) == 0 {
		return "", err
	}
	if err := kube.Delete(ctx, c.Client, rights...); err != nil {
		return "", err
	}
	if rights, err = membernamespace.Known(ctx, c.Live, c.Client.Scheme(), rights); err != nil {
		return "", err
	}
	var names []string
	for _, right := range rights {
		names = append(names, kube.Describe(c.Client.Scheme(), right))
	}
	return kube.Clip(strings.Join(names, ", "), maxLeft), nil
}

// policyQuarantine is the admission policy of the chart for the authors of quarantines.
const policyQuarantine = "muster-quarantine-author"

// writeQuarantine follows a write of the status. It announces a change, and writes an AuditEntry
// about a quarantine, once for each process. The time of the condition determines the entry, so
// there is only one.
func (c *Controller) writeQuarantine(ctx context.Context, before, after client.Object) error {
	from, _, _ := membership.QuarantineShown(before)
	to, message, since := membership.QuarantineShown(after)
	switch {
	case from == to:
	case to == "":
		c.quarantines.Forget(after.GetUID())
		ctrl.LoggerFrom(ctx).Info("Quarantine ended")
		c.Recorder.Eventf(after, nil, corev1.EventTypeNormal, reasons.QuarantineEnded, "Quarantine", "the quarantine has ended")
	default:
		ctrl.LoggerFrom(ctx).Info("Member quarantined", "from", from, "to", to)
		c.Recorder.Eventf(after, nil, corev1.EventTypeWarning, to, "Quarantine", "%s", message)
	}
	if audited, _ := c.quarantines.Get(after.GetUID()); to == "" || audited.Equal(since) {
		return nil
	}
	fact := c.quarantineFact(after, muster.AuditQuarantined, since)
	fact.Spec.Message = fact.Spec.Object.Name + " was quarantined: its agent may only send heartbeats and reports"
	if reason := after.GetAnnotations()[fleet.AnnotationQuarantineReason]; reason != "" {
		fact.Spec.Message += "; the reason given: " + kube.Clip(strings.Join(strings.Fields(reason), " "), maxQuarantine)
	}
	c.Audit.Attribute(ctx, &fact, policyQuarantine, after.GetAnnotations()[fleet.AnnotationQuarantinedBy], "decided")
	if err := c.Audit.Write(ctx, fact); err != nil {
		return err
	}
	c.quarantines.Set(after.GetUID(), since)
	return nil
}

// endQuarantine precedes a write of the status without the quarantine: a hub killed in between
// repeats it.
func (c *Controller) endQuarantine(ctx context.Context, before, after client.Object) error {
	from, _, since := membership.QuarantineShown(before)
	if to, _, _ := membership.QuarantineShown(after); from == "" || to != "" {
		return nil
	}
	fact := c.quarantineFact(before, muster.AuditQuarantineEnded, since)
	fact.Spec.Message = "the quarantine of " + fact.Spec.Object.Name + " ended"
	return c.Audit.Write(ctx, fact)
}

// quarantineFact returns the common part of the entries about the begin and the end of a
// quarantine.
func (c *Controller) quarantineFact(record client.Object, reason muster.AuditReason, since time.Time) audit.Fact {
	return c.fact(record, reason, string(record.GetUID()), strconv.FormatInt(since.Unix(), 10))
}

// fact returns a fact about a member for the audit.
func (c *Controller) fact(record client.Object, reason muster.AuditReason, id ...string) audit.Fact {
	fact := audit.Fact{Namespace: record.GetNamespace(), ID: id, Spec: muster.AuditEntrySpec{
		Reason: reason,
		Object: muster.AuditObject{Kind: "Cluster", Namespace: record.GetNamespace(), Name: record.GetName(), UID: record.GetUID()},
		Key:    record.GetAnnotations()[fleet.AnnotationAgentKey],
	}}
	if fact.Namespace == "" {
		fact.Namespace, fact.Spec.Object.Kind = c.SystemNamespace, "MemberCluster"
	}
	return fact
}
