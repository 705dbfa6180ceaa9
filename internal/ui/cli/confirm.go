package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/ui/view"
)

func newConfirm(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	c := &changer{
		IOStreams: streams, access: h, looked: lookedFor{"muster confirm", kindsNamed("bundles", "placements")}, timeout: time.Minute,
	}
	yes := false
	command := c.command(&cobra.Command{
		Use:   "confirm [bundles|placements] NAME",
		Short: "Confirm a change the hub is holding back",
		Long: `Confirm a change on members before the hub makes it. The hub holds back:

- the removal of a Bundle from many Clusters, caused by a change of another object
- the removal of a placement's objects without a known cause
- changes to the deliveries of another hub

The command prints the change and waits for your answer; --yes confirms at once. If the
change is another one by the time of your answer, the command confirms nothing. You need
the right to patch the Bundle or the placement.`,
		Example: `  # Explain the held change
  muster explain bundles clusters/web

  # Confirm the change
  muster confirm bundles clusters/web

  # Confirm the change in a script
  muster confirm bundles clusters/web --yes`,
	}, func(ctx context.Context, hub client.Client, o client.Object) error {
		return c.confirm(ctx, hub, o, yes)
	})
	command.Flags().BoolVar(&yes, "yes", false, "Confirm without a question")
	command.ValidArgsFunction = h.completeThose(c.looked, func(o client.Object) bool { return heldValue(o) != "" })
	return command
}

// heldValue returns the confirming value of an object's held removal, or "".
func heldValue(o client.Object) string {
	_, value := view.HeldRemoval(o)
	return value
}

// confirm prints the held change, waits for the user's answer, and waits for the hub.
func (c *changer) confirm(ctx context.Context, hub client.Client, o client.Object, yes bool) error {
	message, value := view.HeldRemoval(o)
	if value == "" {
		return c.line("%s.", view.NoConfirmationDue(o))
	}
	c.progress.paragraph(0, "%s waits for a confirmation: %s", c.title(o), view.Why(false, message))
	if !yes {
		if err := c.ask(ctx, c.title(o), "use --yes to confirm the change above"); err != nil {
			return err
		}
	}
	if err := c.confirmValue(ctx, hub, o, value); err != nil {
		return err
	}
	return c.follow(ctx, hub, o, "confirmed", func(o client.Object, gone bool) (bool, error) { return gone || heldValue(o) == "", nil })
}

// confirmValue writes the confirming value, if the object still needs it.
func (c *changer) confirmValue(ctx context.Context, hub client.Client, o client.Object, value string) error {
	uid := o.GetUID()
	if err := hub.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return fmt.Errorf("reading %s: %w", c.title(o), err)
	}
	if o.GetUID() != uid || heldValue(o) != value {
		return fmt.Errorf("%s has changed, and the change is not confirmed: run the command again to see the new change", c.title(o))
	}
	before := o.DeepCopyObject().(client.Object)
	annotations := metav1.ObjectMeta{Annotations: o.GetAnnotations()}
	metav1.SetMetaDataAnnotation(&annotations, fleet.AnnotationConfirmRemoval, value)
	o.SetAnnotations(annotations.Annotations)
	err := hub.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%s has changed, and the change is not confirmed: run the command again: %w", c.title(o), err)
	}
	if err != nil {
		return fmt.Errorf("confirming the held change of %s: %w", c.title(o), err)
	}
	return nil
}

// ask prints a question on the terminal, and returns an error unless the user agrees. Without a
// terminal, the error has the flag to use instead.
func (c *changer) ask(ctx context.Context, title, instead string) error {
	return c.askFor(ctx, "Apply this change on the members?", title, instead)
}

// askOnTerminal is askFor on a terminal. Without one it does nothing: a script has decided already.
func (c *changer) askOnTerminal(ctx context.Context, question, title string) error {
	if !c.onTerminal() {
		return nil
	}
	return c.askFor(ctx, question, title, "")
}

func (c *changer) onTerminal() bool {
	file, ok := c.In.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// askFor is ask with another question.
func (c *changer) askFor(ctx context.Context, question, title, instead string) error {
	if !c.onTerminal() {
		return fmt.Errorf("%s waits for a confirmation, and the input is not a terminal: %s", title, instead)
	}
	if _, err := fmt.Fprint(c.ErrOut, question+" Type yes to confirm: "); err != nil {
		return err
	}
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(c.In).ReadString('\n') // the end of the input does not confirm
		answer <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		return errors.New("interrupted; change not confirmed")
	case said := <-answer:
		if said != "yes" {
			return errors.New("change not confirmed; nothing has changed")
		}
		return nil
	}
}
