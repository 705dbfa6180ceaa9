package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/decision"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/fleet/updaterun"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// kindsNamed returns the kinds of these names.
func kindsNamed(names ...string) []kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return !slices.Contains(names, k.name) })
}

func newApprove(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	c := &changer{
		IOStreams: streams, access: h, looked: lookedFor{"muster approve", kindsNamed("requests", "clusters", "runs", kindApprovals)},
		timeout: time.Minute,
	}
	return c.takesReason(c.command(&cobra.Command{
		Use:   "approve [requests|clusters|runs|approvals] NAME",
		Short: "Approve a registration request, a Cluster, or a stage of a staged update run",
		Long: `Approve a pending registration request, or the deliveries to a Cluster in a workspace with
approval of members. You need the verb approve on clusterregistrations or clusters.

For a staged update run, the command approves the waiting stage, in the status of its
approval request. You need the right to patch clusterapprovalrequests/status, or
approvalrequests/status in the namespace of the run.`,
		Example: `  # List what waits for an approval
  muster get requests
  muster get runs

  # Approve a request
  muster approve request-x7k2p
  muster approve clusters clusters/web
  muster approve runs shop-v2

  # Say why, for the audit
  muster approve request-x7k2p --reason "ticket 4711"`,
	}, func(ctx context.Context, hub client.Client, o client.Object) error {
		if run, is := view.RunOf(o); is {
			return c.approveStage(ctx, hub, run)
		}
		if request, is := updaterun.ApprovalRequestOf(o); is {
			return c.approveRequest(ctx, hub, request)
		}
		if r, ok := o.(*fleet.ClusterRegistration); ok {
			if asks, err := c.untilItAsks(ctx, hub, r); !asks || err != nil {
				return err
			}
		}
		if err := c.decide(ctx, hub, o, decision.Approve.Because(c.reason)); err != nil {
			return err
		}
		return c.follow(ctx, hub, o, "approved", func(o client.Object, gone bool) (bool, error) {
			switch o := o.(type) {
			case *fleet.ClusterRegistration:
				return o.Status.Granted, c.isOver(o, gone)
			case *fleet.Cluster:
				return gone || !membership.AwaitsApproval(o), nil
			}
			return true, nil
		})
	}))
}

// untilItAsks waits until a request needs an approval, and reports whether there is something
// to approve. Earlier approvals do not count: one from the creation, or one from before a
// denial.
func (c *changer) untilItAsks(ctx context.Context, hub client.Client, r *fleet.ClusterRegistration) (bool, error) {
	if r.Status.Granted {
		return false, c.line("%s is already granted.", c.title(r))
	}
	if decision.Decided(r) {
		if err := c.decide(ctx, hub, r, decision.Reconsider); err != nil {
			return false, err
		}
	}
	asks := func() bool {
		return r.Status.State == fleet.RegistrationPending && r.Status.Reason != reasons.ApprovedTooEarly
	}
	if c.timeout <= 0 && !asks() {
		return false, fmt.Errorf("%s does not wait for an approval, its state is %s, and an earlier approval "+
			"does not count: set --timeout to wait for it", c.title(r), view.State(r))
	}
	err := c.follow(ctx, hub, r, "waiting for approval", func(_ client.Object, gone bool) (bool, error) {
		return asks() || r.Status.Granted, c.isOver(r, gone)
	})
	return !r.Status.Granted, err
}

// isOver returns an error if the request can no longer be granted.
func (c *changer) isOver(r *fleet.ClusterRegistration, gone bool) error {
	switch state := r.Status.State; {
	case gone:
		return fmt.Errorf("%s is gone", c.title(r))
	case r.Status.Reason == fleet.ReasonNotApproved: // an earlier denial
	case state == fleet.RegistrationDenied, state == fleet.RegistrationConflict:
		return fmt.Errorf("%s cannot be granted, its state is %s: %s", c.title(r), state, r.Status.Message)
	}
	return nil
}

func newDeny(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	c := &changer{IOStreams: streams, access: h, looked: lookedFor{"muster deny", kindsNamed("requests", "clusters")}, timeout: time.Minute}
	return c.takesReason(c.command(&cobra.Command{
		Use:   "deny [requests|clusters] NAME",
		Short: "Deny a registration request or new deliveries to a Cluster",
		Long: `Deny a pending registration request, or new deliveries to a Cluster in a workspace with
approval of members. The Cluster keeps its present deliveries and its access: use
"muster revoke" to end the access of a member.`,
		Example: `  # Deny a request, and say why
  muster deny request-x7k2p --reason "not a cluster of this team"`,
	}, func(ctx context.Context, hub client.Client, o client.Object) error {
		if r, ok := o.(*fleet.ClusterRegistration); ok && r.Status.Granted {
			return fmt.Errorf("%s is already granted: run muster revoke %s/%s to revoke its access", c.title(o), r.Namespace, r.Status.ClusterName)
		}
		if err := deniable(o); err != nil {
			return err
		}
		if err := c.decide(ctx, hub, o, decision.Deny.Because(c.reason)); err != nil {
			return err
		}
		return c.follow(ctx, hub, o, "denied", func(o client.Object, gone bool) (bool, error) {
			r, ok := o.(*fleet.ClusterRegistration)
			if ok && r.Status.Granted && !gone {
				return false, fmt.Errorf("%s was already granted: run muster revoke %s/%s to revoke its access",
					c.title(o), r.Namespace, r.Status.ClusterName)
			}
			return gone || !ok || r.Status.State == fleet.RegistrationDenied, nil
		})
	}))
}

func newRevoke(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	c := &changer{IOStreams: streams, access: h, looked: lookedFor{"muster revoke", kindsNamed("members")}, timeout: time.Minute}
	var undo, yes, dryRun bool
	command := c.command(&cobra.Command{
		Use:   "revoke [clusters|memberclusters] NAME",
		Short: "Revoke or restore a member's access",
		Long: `Revoke all access of a member at once, for every holder of its credential. The Cluster or
MemberCluster stays on the hub, and the workloads stay on the cluster.

With --undo the member may join again: a Cluster with the values of a new registration
token, a MemberCluster with a token of its identity. "muster quarantine" takes all access
away but the heartbeat, and needs no new token.

On a terminal the command waits for your answer; --yes revokes at once.`,
		Example: `  # Revoke the access of a member
  muster revoke clusters/web

  # Allow the member to join again
  muster revoke clusters/web --undo`,
	}, func(ctx context.Context, hub client.Client, o client.Object) error {
		d, what := decision.Revoke, "revoked"
		if undo {
			d, what = decision.Readmit, "restored"
		}
		switch {
		case dryRun:
			return c.line("%s would be %s.", c.title(o), what)
		case !undo && !yes && !saysRevoked(o):
			question := c.title(o) + " loses its access at once, and needs a new token to come back. Its workloads stay."
			if err := c.askOnTerminal(ctx, question, c.title(o)); err != nil {
				return err
			}
		}
		if err := c.decide(ctx, hub, o, d); err != nil {
			return err
		}
		return c.follow(ctx, hub, o, what, func(o client.Object, gone bool) (bool, error) {
			return gone || saysRevoked(o) != undo, nil
		})
	})
	command.Flags().BoolVar(&undo, "undo", false, "Restore the access of a revoked member")
	command.Flags().BoolVar(&yes, "yes", false, "Revoke without a question")
	command.Flags().BoolVar(&dryRun, "dry-run", false, "Only print the change")
	return command
}

// saysRevoked reports whether the hub has revoked the member's access.
func saysRevoked(o client.Object) bool {
	switch o := o.(type) {
	case *fleet.Cluster:
		return kube.ReasonOf(o.Status.Conditions, fleet.ConditionReady) == reasons.Revoked
	case *clusterv1beta1.MemberCluster:
		return membership.MemberClusterStatus(&o.Status).Reason == reasons.Revoked
	}
	return false
}

// deniable returns an error for a Cluster in a workspace without approval of members, because the
// hub ignores a denial there.
func deniable(o client.Object) error {
	cluster, ok := o.(*fleet.Cluster)
	if !ok || cluster.Status.Namespace == "" || kube.FindCondition(cluster.Status.Conditions, fleet.ConditionDeliveryApproved) != nil {
		return nil
	}
	return fmt.Errorf("a denial of Cluster %[1]s/%[2]s has no effect, because workspace %[1]s has no approval of members: "+
		"run muster cordon %[1]s/%[2]s to keep new deliveries from it, or muster revoke %[1]s/%[2]s to end its access",
		cluster.Namespace, cluster.Name)
}
