package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/ui/drain"
	"github.com/muster-fleet/muster/internal/ui/view"
)

func newDrain(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	c := &changer{IOStreams: streams, access: h, looked: lookedFor{"muster drain", kindsNamed("members")}, timeout: 15 * time.Minute}
	var undo, dryRun bool
	command := c.command(&cobra.Command{
		Use:    "drain [clusters|memberclusters] NAME",
		Hidden: true, // for lack of room on the page: the help of muster cordon names it
		Short:  "Cordon a member, and move its placements to other members",
		Long: `Cordon a member, and move its placements to other members. A ClusterResourcePlacement with
the policy PickN moves as soon as its ClusterResourcePlacementDisruptionBudget allows it;
without a budget, as soon as maxUnavailable of its strategy does. The hub evicts it only if
another member takes it.

Everything else stays, and the command names it: placements that pick all members, or members
by name, ResourcePlacements, and Bundles, which select Clusters by labels.

You may interrupt the command, and run it again. Placements that have moved stay where they
are, also after --undo.

You need the verb cordon on clusters or memberclusters, the rights to create, get and delete
clusterresourceplacementevictions, and to list Works of the member.`,
		Example: `  # List what would move, and what stays
  muster drain clusters/web --dry-run

  # Take a member out of service
  muster drain clusters/web

  # Let the member get new deliveries again
  muster drain clusters/web --undo`,
	}, func(ctx context.Context, hub client.Client, o client.Object) error {
		if undo {
			return c.cordon(ctx, hub, o, true)
		}
		if err := drain.Refusal(o); err != nil {
			return err
		}
		if dryRun {
			return c.planDrain(ctx, hub, o)
		}
		return c.drain(ctx, hub, o)
	})
	command.Flags().BoolVar(&undo, "undo", false, "Let the member get new deliveries again; placements that have moved do not come back")
	command.Flags().BoolVar(&dryRun, "dry-run", false, "Only list what would move, and what stays and why")
	return command
}

// newUncordon is the spelling of kubectl for muster cordon --undo.
func newUncordon(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	c := &changer{IOStreams: streams, access: h, looked: lookedFor{"muster uncordon", kindsNamed("members")}}
	return c.once(&cobra.Command{
		Use:     "uncordon [clusters|memberclusters] NAME",
		Hidden:  true, // the same as cordon --undo
		Short:   "Let a cordoned or drained member get new deliveries again",
		Long:    `Let a cordoned or drained member get new deliveries again, as "muster cordon --undo" does.`,
		Example: `  muster uncordon clusters/web`,
	}, func(ctx context.Context, hub client.Client, o client.Object) error {
		return c.cordon(ctx, hub, o, true)
	})
}

// planDrain prints the effects of a drain, as far as the hub has reported them.
func (c *changer) planDrain(ctx context.Context, hub client.Client, member client.Object) error {
	plans, stays, err := (&drain.Drain{Hub: hub, Member: member}).Plans(ctx)
	if err != nil {
		return err
	}
	if membership.Cordoned(member) {
		c.progress.line("%s is cordoned already.", c.title(member))
	} else {
		c.progress.line("%s would be cordoned.", c.title(member))
	}
	for _, p := range plans {
		c.progress.line("ClusterResourcePlacement %s would move to %s.", p.Placement, kube.JoinNames(p.To[:min(len(p.To), 3)], len(p.To)))
	}
	c.staying(stays)
	return c.progress.err
}

// staying prints the remaining objects.
func (c *changer) staying(stays []drain.Stay) {
	for _, s := range stays {
		c.progress.paragraph(2, "Stays: %s", s)
	}
}

// drain cordons the member, and moves its placements.
func (c *changer) drain(ctx context.Context, hub client.Client, member client.Object) error {
	d := &drain.Drain{
		Hub: hub, Member: member, Timeout: c.timeout, Every: lookEvery, Say: func(text string) { c.progress.step("%s", text) },
	}
	result, err := d.Run(ctx)
	name, late := view.NameOf(member), errors.As(err, &drain.TimedOut{})
	if late || errors.Is(err, drain.ErrInterrupted) {
		err = fmt.Errorf("%w; %s stays cordoned, and what left it does not come back. Evictions that the hub has begun continue. "+
			"To go on: muster drain %[3]s; to end it: muster uncordon %[3]s", err, c.title(member), name)
	}
	if late {
		return timedOut{err}
	}
	if err != nil {
		return err
	}
	c.staying(result.Stays)
	if result.Started > 0 {
		c.progress.line("%s is cordoned, and the hub moves %d placements. To follow them: muster drain %s", c.title(member), result.Started, name)
		return c.progress.err
	}
	c.progress.line("%s is drained: %d placements moved. To let it get deliveries again: muster uncordon %s", c.title(member), result.Moved,
		name)
	return cmp.Or(c.progress.err, ctx.Err())
}
