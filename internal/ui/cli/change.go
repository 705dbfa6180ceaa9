package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/fleet/decision"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// lookEvery is the interval of reads. A user may lack the right to watch the object.
const lookEvery = 300 * time.Millisecond

// changer is a command that changes an object and follows the result. The hub does the work:
// the user may interrupt the command, and run it again.
type changer struct {
	genericiooptions.IOStreams
	*access
	looked   lookedFor
	timeout  time.Duration
	progress progress
	// reason explains the change to other users.
	reason string
}

// act is the action of a changer on one object.
type act func(ctx context.Context, hub client.Client, o client.Object) error

// command returns the cobra command of a changer for one object, with a time to follow the result.
func (c *changer) command(command *cobra.Command, do act) *cobra.Command {
	c.once(command, do)
	command.Flags().DurationVar(&c.timeout, "timeout", c.timeout, "Time to wait for the result; 0 to return at once")
	return command
}

// once returns the cobra command of a changer for one object, without a result to follow.
func (c *changer) once(command *cobra.Command, do act) *cobra.Command {
	command.Args = takes(1, 2, "a name")
	command.RunE = func(command *cobra.Command, args []string) error {
		c.progress = c.newProgress(c.Out)
		o, hub, err := c.subject(command.Context(), c.looked, args)
		if err != nil {
			return err
		}
		return do(command.Context(), hub, o)
	}
	command.ValidArgsFunction = c.completeNames(c.looked)
	return c.acceptAllNamespaces(command)
}

// takesReason adds the flag for the reason of a decision.
func (c *changer) takesReason(command *cobra.Command) *cobra.Command {
	command.Flags().StringVar(&c.reason, "reason", "", "Say why, for other users: in at most 512 characters")
	return command
}

// decide writes a decision about the object.
func (c *changer) decide(ctx context.Context, hub client.Client, o client.Object, d decision.Decision) error {
	if err := d.Write(ctx, hub, o); err != nil {
		return fmt.Errorf("changing %s: %w", c.title(o), err)
	}
	return nil
}

// patch sets annotations or labels of the object, checked by its UID; nil removes one.
func (c *changer) patch(ctx context.Context, hub client.Client, o client.Object, field string, values map[string]any) error {
	if err := kube.PatchMetadata(ctx, hub, o, field, values); err != nil {
		return fmt.Errorf("changing %s: %w", c.title(o), err)
	}
	return nil
}

// isDone reports whether the object has reached the goal. The error reports an unreachable
// goal.
type isDone func(o client.Object, gone bool) (done bool, err error)

// follow prints each state of an object until it reaches the goal.
func (c *changer) follow(ctx context.Context, hub client.Client, o client.Object, what string, reached isDone) error {
	if c.timeout <= 0 {
		return nil
	}
	uid := o.GetUID()
	var unseen error // error of the last read; it may be temporary
	err := wait.PollUntilContextTimeout(ctx, lookEvery, c.timeout, true, func(ctx context.Context) (bool, error) {
		err := hub.Get(ctx, client.ObjectKeyFromObject(o), o)
		switch {
		case kube.NotServed(err), apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
			return false, fmt.Errorf("reading the progress of %s: %w", c.title(o), err)
		case client.IgnoreNotFound(err) != nil:
			if ctx.Err() == nil {
				unseen = err
				c.progress.step("the hub does not answer")
			}
			return false, nil
		}
		unseen = nil
		now, gone := "gone", err != nil || o.GetUID() != uid // a new object of the same name does not count
		if !gone {
			now = view.State(o) + because(o)
		}
		c.progress.step("%s", now)
		return reached(o, gone)
	})
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted; the hub continues, and you can run the command again")
	case wait.Interrupted(err) && unseen != nil:
		return timedOut{fmt.Errorf("reading the progress of %s timed out after %s, and the hub continues: %w", c.title(o), c.timeout, unseen)}
	case wait.Interrupted(err):
		return timedOut{fmt.Errorf("%s is not %s after %s; run muster explain %s %s to see why. The hub continues meanwhile",
			c.title(o), what, c.timeout.Round(100*time.Millisecond), c.kindOfObject(o), view.NameOf(o))}
	case err != nil:
		return err
	}
	return c.progress.err
}

func (c *changer) line(format string, args ...any) error {
	p := &prose{out: c.Out}
	p.line(format, args...)
	return p.err
}
