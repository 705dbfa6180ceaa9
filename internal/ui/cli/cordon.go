package cli

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/fleet/decision"
)

func newCordon(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	c := &changer{IOStreams: streams, access: h, looked: lookedFor{"muster cordon", kindsNamed("members")}}
	undo := false
	command := c.once(&cobra.Command{
		Use:   "cordon [clusters|memberclusters] NAME",
		Short: "Keep new deliveries from a member; see also muster drain",
		Long: `Keep new deliveries from a member: no Bundle that it does not have yet is deployed on it, and
no placement picks it. Its present deliveries stay, and are updated. You need the verb cordon
on clusters or memberclusters. "muster drain" also moves placements to other members. "muster
taint" keeps away only what does not tolerate a taint. "muster quarantine" takes everything away
but the heartbeat.`,
		Example: `  # Keep new deliveries from a member
  muster cordon clusters/web

  # Let the member get new deliveries again
  muster cordon clusters/web --undo`,
	}, func(ctx context.Context, hub client.Client, member client.Object) error {
		return c.cordon(ctx, hub, member, undo)
	})
	command.Flags().BoolVar(&undo, "undo", false, "Let the member get new deliveries again")
	return command
}

func (c *changer) cordon(ctx context.Context, hub client.Client, member client.Object, undo bool) error {
	if undo {
		if err := c.decide(ctx, hub, member, decision.Uncordon); err != nil {
			return err
		}
		return c.line("%s gets new deliveries again.", c.title(member))
	}
	if err := c.decide(ctx, hub, member, decision.Cordon); err != nil {
		return err
	}
	return c.line("%s is cordoned. It keeps its deliveries, and gets no new ones.", c.title(member))
}
