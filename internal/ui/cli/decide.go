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
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// reasonApprovedTooEarly is that of a request that was approved before it asked for that.
const reasonApprovedTooEarly = "ApprovedTooEarly"

// kindsNamed are some of the kinds.
func kindsNamed(names ...string) []kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return !slices.Contains(names, k.name) })
}

func newApprove(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	c := &changer{IOStreams: streams, access: h, looked: lookedFor{"muster approve", kindsNamed("requests", "clusters", "runs", kindApprovals)}, timeout: time.Minute}
	return c.command(&cobra.Command{
		Use:   "approve [requests|clusters|runs|approvals] NAME",
		Short: "Approve a request to register, a Cluster, or a stage of a staged update run",
		Long: `approve lets a request to register go on that waits for somebody, and has Bundles and placements delivered to a Cluster of a workspace that approves its
members. It takes the verb approve on clusterregistrations, or on clusters.

Of a staged update run it approves the stage that the run waits for, by the status of its approval request. That takes the right to patch
clusterapprovalrequests/status, or approvalrequests/status in the namespace of the run.`,
		Example: `  # Who waits?
  muster get requests
  muster get runs

  muster approve request-x7k2p
  muster approve clusters clusters/web
  muster approve runs shop-v2`,
	}, func(ctx context.Context, hub client.Client, o client.Object) error {
		if run, is := view.RunOf(o); is {
			return c.approveStage(ctx, hub, run)
		}
		if request, is := view.ApprovalOf(o); is {
			return c.approveRequest(ctx, hub, request)
		}
		if r, ok := o.(*fleet.ClusterRegistration); ok {
			if asks, err := c.untilItAsks(ctx, hub, r); !asks || err != nil {
				return err
			}
		}
		if err := c.annotate(ctx, hub, o, map[string]any{fleet.AnnotationApproved: "true"}); err != nil {
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
	})
}

// untilItAsks waits until a request asks for approval, as an approval of before does not count: not one that came with the request, and not after a denial. It
// says whether there is something to approve.
func (c *changer) untilItAsks(ctx context.Context, hub client.Client, r *fleet.ClusterRegistration) (bool, error) {
	if r.Status.Granted {
		return false, c.line("%s is granted already.", c.title(r))
	}
	if _, said := r.Annotations[fleet.AnnotationApproved]; said {
		if err := c.annotate(ctx, hub, r, map[string]any{fleet.AnnotationApproved: nil}); err != nil {
			return false, err
		}
	}
	asks := func() bool {
		return r.Status.State == fleet.RegistrationPending && r.Status.Reason != reasonApprovedTooEarly
	}
	if c.timeout <= 0 && !asks() {
		return false, fmt.Errorf("%s does not ask for approval at the moment, it is %s, and an approval of before does not count: give it a --timeout", c.title(r), view.State(r))
	}
	err := c.follow(ctx, hub, r, "waiting for approval", func(_ client.Object, gone bool) (bool, error) {
		return asks() || r.Status.Granted, c.isOver(r, gone)
	})
	return !r.Status.Granted, err
}

// isOver is why a request is not granted any more; nil if it may be.
func (c *changer) isOver(r *fleet.ClusterRegistration, gone bool) error {
	switch state := r.Status.State; {
	case gone:
		return fmt.Errorf("%s is gone", c.title(r))
	case r.Status.Reason == fleet.ReasonNotApproved: // as it was denied before
	case state == fleet.RegistrationDenied, state == fleet.RegistrationConflict:
		return fmt.Errorf("%s cannot be granted, it is %s: %s", c.title(r), state, r.Status.Message)
	}
	return nil
}

func newDeny(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	c := &changer{IOStreams: streams, access: h, looked: lookedFor{"muster deny", kindsNamed("requests", "clusters")}, timeout: time.Minute}
	return c.command(&cobra.Command{
		Use:   "deny [requests|clusters] NAME",
		Short: "Refuse a request to register, or have nothing new delivered to a Cluster",
		Long: `deny refuses a request to register that waits for somebody. A Cluster of a workspace that approves its members keeps what it has and gets nothing new. A
member that is in already is not put out by it: muster revoke does that.`,
		Example: `  muster deny request-x7k2p`,
	}, func(ctx context.Context, hub client.Client, o client.Object) error {
		if r, ok := o.(*fleet.ClusterRegistration); ok && r.Status.Granted {
			return fmt.Errorf("%s is granted already: muster revoke %s/%s takes the access away that its Cluster has", c.title(o), r.Namespace, r.Status.ClusterName)
		}
		if err := c.annotate(ctx, hub, o, map[string]any{fleet.AnnotationApproved: "false"}); err != nil {
			return err
		}
		return c.follow(ctx, hub, o, "denied", func(o client.Object, gone bool) (bool, error) {
			r, ok := o.(*fleet.ClusterRegistration)
			if ok && r.Status.Granted && !gone {
				return false, fmt.Errorf("%s was granted before: muster revoke %s/%s takes the access away", c.title(o), r.Namespace, r.Status.ClusterName)
			}
			return gone || !ok || r.Status.State == fleet.RegistrationDenied, nil
		})
	})
}

func newRevoke(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	c := &changer{IOStreams: streams, access: h, looked: lookedFor{"muster revoke", kindsNamed("members")}, timeout: time.Minute}
	undo := false
	command := c.command(&cobra.Command{
		Use:   "revoke [clusters|memberclusters] NAME",
		Short: "Take all access of a member away, or take that back",
		Long: `revoke ends all access of a member at once, whoever has its credential. Its record stays, and so does what is on its cluster. With --undo it may come back: a
Cluster with the values of a new registration token, a MemberCluster with a token of its identity.`,
		Example: `  muster revoke clusters/web
  muster revoke clusters/web --undo`,
	}, func(ctx context.Context, hub client.Client, o client.Object) error {
		var value any = "true"
		what := "revoked"
		if undo {
			value, what = nil, "let in again"
		}
		if err := c.annotate(ctx, hub, o, map[string]any{clusterv1beta1.AnnotationRevoked: value}); err != nil {
			return err
		}
		return c.follow(ctx, hub, o, what, func(o client.Object, gone bool) (bool, error) {
			return gone || saysRevoked(o) != undo, nil
		})
	})
	command.Flags().BoolVar(&undo, "undo", false, "take a revocation back")
	return command
}

// saysRevoked says whether the hub has taken up that a member is revoked.
func saysRevoked(o client.Object) bool {
	switch o := o.(type) {
	case *fleet.Cluster:
		return kube.ReasonOf(o.Status.Conditions, fleet.ConditionReady) == membership.ReasonRevoked
	case *clusterv1beta1.MemberCluster:
		return membership.MemberClusterStatus(&o.Status).Reason == membership.ReasonRevoked
	}
	return false
}
