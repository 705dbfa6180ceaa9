package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/fleet/decision"
	"github.com/muster-fleet/muster/internal/ui/view"
)

func newPause(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	c := &changer{IOStreams: streams, access: h,
		looked: lookedFor{"muster pause", kindsNamed("members", "bundles", "repos", "helmops", "placements")}}
	undo := false
	command := c.once(&cobra.Command{
		Use:   "pause [bundles|repos|helmops|placements|members] NAME",
		Short: "Hold back all changes of a delivery, or on a member; see also muster retry",
		Long: `Hold back all changes of a Bundle, a GitRepo, a HelmOp or a placement, or all changes on a
member. What is deployed stays, and nothing new arrives. A Bundle that a GitRepo or a HelmOp
makes is paused there. You need the right to patch the object.`,
		Example: `  # Hold back the changes of a Bundle
  muster pause bundles/web

  # Let them go on
  muster pause bundles/web --undo`,
	}, func(ctx context.Context, hub client.Client, o client.Object) error { return c.pause(ctx, hub, o, undo) })
	command.Flags().BoolVar(&undo, "undo", false, "Let the changes go on")
	return command
}

func (c *changer) pause(ctx context.Context, hub client.Client, o client.Object, undo bool) error {
	if err := c.checkSource(ctx, hub, o, "pause"); err != nil {
		return err
	}
	write, text := decision.Pause, "%s is paused. What is deployed stays, and nothing changes."
	if undo {
		write, text = decision.Resume, "%s is not paused any more."
	}
	if err := write(ctx, hub, o); err != nil {
		return fmt.Errorf("changing %s: %w", c.title(o), err)
	}
	return c.line(text, c.title(o))
}

func newRetry(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	c := &changer{IOStreams: streams, access: h, looked: lookedFor{"muster retry", kindsNamed("bundles", "repos", "helmops")}}
	return c.once(&cobra.Command{
		Use:    "retry [bundles|repos|helmops] NAME",
		Hidden: true, // for lack of room on the page: the help of muster pause names it
		Short:  "Deploy a Bundle again on all of its members",
		Long: `Deploy a Bundle again on all of its members, in the order of its rollout, without a change of
its contents. For a GitRepo or a HelmOp, its source is read again and all of its Bundles are
deployed again. You need the right to patch the object.`,
		Example: `  muster retry bundles/web`,
	}, c.retry)
}

func (c *changer) retry(ctx context.Context, hub client.Client, o client.Object) error {
	if err := c.checkSource(ctx, hub, o, "retry"); err != nil {
		return err
	}
	if decision.Paused(o) {
		return fmt.Errorf("%s is paused: end that first with muster pause %s/%s --undo", c.title(o), c.kindOfObject(o), view.NameOf(o))
	}
	if err := decision.Retry(ctx, hub, o); err != nil {
		return fmt.Errorf("changing %s: %w", c.title(o), err)
	}
	return c.line("%s is deployed again; muster explain %s/%s shows its progress.", c.title(o), c.kindOfObject(o), view.NameOf(o))
}

// checkSource returns an error for a Bundle written by a GitRepo or a HelmOp, because it would
// revert a user's change.
func (c *changer) checkSource(ctx context.Context, hub client.Client, o client.Object, verb string) error {
	source, err := decision.SourceOf(ctx, hub, o)
	if err != nil {
		return fmt.Errorf("reading the source of %s: %w", c.title(o), err)
	}
	if source == nil {
		return nil
	}
	return fmt.Errorf("%s makes %s, and sets its spec: run muster %s %s/%s", c.title(source), c.title(o), verb,
		c.kindOfObject(source), view.NameOf(source))
}
