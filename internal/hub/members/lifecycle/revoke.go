package lifecycle

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	muster "github.com/muster-fleet/muster/api/muster/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/members/audit"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/kube"
)

// revocationRetry is the pause before the next attempt to complete a revocation.
const revocationRetry = 30 * time.Second

// Revoke begins another epoch of a revoked membership object, and then ends the access of the
// previous epoch. It continues until the old namespace is gone, even if the user restores access
// meanwhile. Revoke returns the remaining access of a revoked member according to the API server,
// or "".
func (c *Controller) Revoke(ctx context.Context, record client.Object, r Reconciliation) (left string, err error) {
	var reader client.Reader = c.Client
	revoked := membership.Revoked(record)
	if revoked || !membership.Countable(record) {
		begun, err := c.beginEpoch(ctx, record, r)
		if err != nil {
			return "", err
		}
		if begun {
			reader = c.Live // the cache may not have the namespace yet
		}
	}
	disused := membernamespace.Disused(record)
	for _, former := range disused {
		state, _, err := former.ObserveNamespace(ctx, reader)
		if err != nil {
			return "", err
		}
		if state != membernamespace.NamespaceAbsent && state != membernamespace.NamespaceTaken {
			if err := c.end(ctx, former, r); err != nil {
				return "", err
			}
		}
	}
	if !revoked || len(disused) == 0 {
		return "", nil
	}
	left, err = c.left(ctx, append(disused, membernamespace.Of(record))...)
	if err == nil && left == "" && !membership.Countable(record) {
		left = "Namespace " + membernamespace.Of(record).Namespace // until it is gone, the next agent would get the same namespace
	}
	return left, err
}

// end removes all access of a member, and deletes its namespace.
func (c *Controller) end(ctx context.Context, member membernamespace.Member, r Reconciliation) error {
	c.Liveness.Forget(member.Namespace)
	r.Forget(member.Namespace)
	if err := member.EndAccess(ctx, c.Client, c.Live); err != nil {
		return err
	}
	if err := member.DeleteNamespace(ctx, c.Client, c.Live); err != nil {
		return err
	}
	return member.Release(ctx, c.Client, c.Live)
}

// left names the remaining access of a revoked member, in the previous and the current epoch. It
// first deletes the access objects left outside a deleted namespace.
func (c *Controller) left(ctx context.Context, members ...membernamespace.Member) (string, error) {
	var remaining []string
	for _, member := range members {
		left, err := member.Access(ctx, c.Client, c.Live)
		if err == nil && len(left) > 0 {
			if err = member.EndAccess(ctx, c.Client, c.Live); err == nil {
				left, err = member.Access(ctx, c.Client, c.Live)
			}
		}
		if err != nil {
			return "", err
		}
		remaining = append(remaining, left...)
	}
	return kube.Clip(strings.Join(remaining, ", "), maxLeft), nil
}

// maxLeft bounds the list of objects in a message.
const maxLeft = 512

// policyRevoker is the admission policy of the chart for the authors of revocations. Without the
// policy the author is unknown.
const policyRevoker = "muster-revocation-author"

// revoked returns the audit entry about a revocation.
func (c *Controller) revoked(ctx context.Context, record client.Object, member membernamespace.Member) audit.Fact {
	fact := c.fact(record, muster.AuditRevoked, string(record.GetUID()), strconv.Itoa(membership.Epoch(record)))
	fact.Spec.Message = fmt.Sprintf("%s was revoked: all access to namespace %s ends",
		kube.Describe(c.Client.Scheme(), record), member.Namespace)
	c.Audit.Attribute(ctx, &fact, policyRevoker, record.GetAnnotations()[clusterv1beta1.AnnotationRevokedBy], "decided")
	return fact
}

// beginEpoch moves the member of a revoked membership object to another namespace, unless it cannot
// have used the present one. It reports whether it moved the member. It writes the epoch before it
// deletes anything, so a hub killed in between continues with the same namespace.
func (c *Controller) beginEpoch(ctx context.Context, record client.Object, r Reconciliation) (bool, error) {
	member := membernamespace.Of(record)
	state, _, err := member.ObserveNamespace(ctx, c.Live)
	if err != nil {
		return false, err
	}
	if !membership.Countable(record) {
		return false, c.restart(ctx, record, member, state, r)
	}
	cluster, _ := record.(*fleet.Cluster)
	// the namespace may have been deleted by hand, also before the first status of a new Cluster
	shown := cluster != nil &&
		(cluster.Status.Namespace == member.Namespace || cluster.Status.AgentState == "" && membership.JoinsNatively(cluster))
	if state == membernamespace.NamespaceTaken || state == membernamespace.NamespaceAbsent && !shown {
		return false, nil
	}
	report, err := member.ReadReport(ctx, c.Live)
	if err != nil && !kube.NotServed(err) { // without the definition of reports there is none
		return false, err
	}
	before := kube.Whole(record)
	membernamespace.BeginEpoch(record, report)
	if err := c.Audit.Write(ctx, c.revoked(ctx, record, member)); err != nil {
		return false, err
	}
	if err := kube.Patch(ctx, c.Client, before, record); err != nil {
		return false, fmt.Errorf("revoking %s: %w", kube.Describe(c.Client.Scheme(), record), err)
	}
	ctrl.LoggerFrom(ctx).Info("Member revoked", "namespace", member.Namespace, "epoch", membership.Epoch(record))
	return true, nil
}

// restart resets an epoch at its maximum to 1, once the membership object has no namespace. Nothing
// in the next epoch refers to the old namespace, so restart first ends a revoked one. The hub
// creates no namespace for such an epoch.
func (c *Controller) restart(ctx context.Context, record client.Object, member membernamespace.Member, state membernamespace.NamespaceState,
	r Reconciliation) error {
	switch {
	case state == membernamespace.NamespaceTaken:
		return nil
	case state != membernamespace.NamespaceAbsent && !membership.Revoked(record):
		return nil
	case state != membernamespace.NamespaceAbsent:
		if err := c.Audit.Write(ctx, c.revoked(ctx, record, member)); err != nil {
			return err
		}
		return c.end(ctx, member, r)
	}
	before := kube.Whole(record)
	membernamespace.BeginEpoch(record, nil) // the report went with the namespace
	if err := kube.Patch(ctx, c.Client, before, record); err != nil {
		return fmt.Errorf("beginning to count the revocations of %s anew: %w", kube.Describe(c.Client.Scheme(), record), err)
	}
	return nil
}
