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
	c := &changer{IOStreams: streams, access: h, looked: lookedFor{"muster confirm", kindsNamed("bundles", "placements")}, timeout: time.Minute}
	yes := false
	command := c.command(&cobra.Command{
		Use:   "confirm [bundles|placements] NAME",
		Short: "Confirm a removal that the hub holds back",
		Long: `confirm has the hub do on members what it holds back: remove a Bundle that many Clusters would lose by a change of something else, or objects of a placement that are
missing without a cause, or change what another hub has delivered. The command prints what would be done and asks; --yes confirms without asking. If the hub would do
something else by the time that you answer, nothing is confirmed. You need the right to patch the Bundle or the placement.`,
		Example: `  # What is held back, and why?
  muster explain bundles clusters/web

  muster confirm bundles clusters/web

  # In a script.
  muster confirm bundles clusters/web --yes`,
	}, func(ctx context.Context, hub client.Client, o client.Object) error {
		return c.confirm(ctx, hub, o, yes)
	})
	command.Flags().BoolVar(&yes, "yes", false, "confirm without asking")
	command.ValidArgsFunction = h.completeThose(c.looked, func(o client.Object) bool { return heldValue(o) != "" })
	return command
}

// heldValue returns the value that confirms the removal that an object waits for; empty if it waits
// for none.
func heldValue(o client.Object) string {
	_, value := view.HeldRemoval(o)
	return value
}

// confirm prints what the hub holds back, asks whether to remove it, and waits until the hub
// removes it.
func (c *changer) confirm(ctx context.Context, hub client.Client, o client.Object, yes bool) error {
	message, value := view.HeldRemoval(o)
	if value == "" {
		return c.line("%s waits for no confirmation.", c.title(o))
	}
	c.progress.paragraph(0, "%s waits for a confirmation: %s", c.title(o), view.Why(false, message))
	if !yes {
		if err := c.ask(ctx, c.title(o), "--yes confirms what is printed above"); err != nil {
			return err
		}
	}
	if err := c.confirmValue(ctx, hub, o, value); err != nil {
		return err
	}
	return c.follow(ctx, hub, o, "confirmed", func(o client.Object, gone bool) (bool, error) { return gone || heldValue(o) == "", nil })
}

// confirmValue confirms the removal that a value stands for, if the object that was found still
// waits for it.
func (c *changer) confirmValue(ctx context.Context, hub client.Client, o client.Object, value string) error {
	uid := o.GetUID()
	if err := hub.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return fmt.Errorf("reading %s: %w", c.title(o), err)
	}
	if o.GetUID() != uid || heldValue(o) != value {
		return fmt.Errorf("%s has changed and nothing is confirmed: give the command again to see what it waits for now", c.title(o))
	}
	before := o.DeepCopyObject().(client.Object)
	annotations := metav1.ObjectMeta{Annotations: o.GetAnnotations()}
	metav1.SetMetaDataAnnotation(&annotations, fleet.AnnotationConfirmRemoval, value)
	o.SetAnnotations(annotations.Annotations)
	err := hub.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%s has changed and nothing is confirmed: give the command again: %w", c.title(o), err)
	}
	if err != nil {
		return fmt.Errorf("confirming the removal that %s waits for: %w", c.title(o), err)
	}
	return nil
}

// ask asks on the terminal whether to do what was printed, and returns an error unless the user
// agrees. The error says what to do without a terminal.
func (c *changer) ask(ctx context.Context, title, instead string) error {
	if file, ok := c.In.(*os.File); !ok || !term.IsTerminal(int(file.Fd())) {
		return fmt.Errorf("%s waits for a confirmation, and the input is no terminal: %s", title, instead)
	}
	if _, err := fmt.Fprint(c.ErrOut, "Have the hub do that on members? Type yes to confirm: "); err != nil {
		return err
	}
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(c.In).ReadString('\n') // an input that ends has not agreed
		answer <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		return errors.New("interrupted; nothing is confirmed")
	case said := <-answer:
		if said != "yes" {
			return errors.New("nothing is confirmed, and everything stays as it is")
		}
		return nil
	}
}
