package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/ui/view"
)

func newTokenRotate(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	i := &issuer{IOStreams: streams, access: h}
	looked := lookedFor{"muster token rotate", kindsNamed("tokens")}
	overlap := 24 * time.Hour
	command := &cobra.Command{
		Use:   "rotate NAME",
		Short: "Replace the credential of a registration token",
		Long: `Replace the credential of a registration token, and print the new command to join. The name,
the limits and the end of the token stay. The previous credential stays valid for
--overlap. Members that have registered are not affected.

In GitOps, set the annotations ` + fleet.AnnotationRotate + ` and ` + fleet.AnnotationRotateOverlap + ` instead.`,
		Example: `  # Replace the credential; the previous one ends in a day
  muster token rotate clusters/web

  # End the previous one at once, because others have seen it
  muster token rotate clusters/web --overlap 0`,
		Args:              takes(1, 1, "the name of a token"),
		ValidArgsFunction: h.completeNames(looked),
		RunE: func(command *cobra.Command, args []string) error {
			if err := i.checkFormat(); err != nil {
				return err
			}
			o, hub, err := h.subject(command.Context(), looked, args)
			if err != nil {
				return err
			}
			token := o.(*fleet.ClusterRegistrationToken)
			if err := i.rotate(command.Context(), hub, token, overlap); err != nil {
				return err
			}
			i.id = token.Spec.ClientID
			return i.printIssued(command.Context(), hub, token)
		},
	}
	command.Flags().DurationVar(&overlap, "overlap", overlap, "Remaining life of the previous credential, up to 720h")
	i.formatFlags(command)
	return h.acceptAllNamespaces(command)
}

// rotate requests a rotation, waits for it, and tells when the previous credential ends.
func (i *issuer) rotate(ctx context.Context, hub client.Client, token *fleet.ClusterRegistrationToken, overlap time.Duration) error {
	requested := time.Now().UTC().Format(time.RFC3339Nano)
	annotations := map[string]any{fleet.AnnotationRotate: requested, fleet.AnnotationRotateOverlap: overlap.String()}
	if err := kube.PatchMetadata(ctx, hub, token, "annotations", annotations); err != nil {
		return fmt.Errorf("changing %s: %w", i.title(token), err)
	}
	condition := &fleet.Condition{}
	err := wait.PollUntilContextTimeout(ctx, lookEvery, issuedWithin, true, func(ctx context.Context) (bool, error) {
		if err := hub.Get(ctx, client.ObjectKeyFromObject(token), token); err != nil {
			return false, err
		}
		if condition = kube.FindCondition(token.Status.Conditions, fleet.ConditionRotated); condition == nil {
			return false, nil
		}
		waits := condition.Status == corev1.ConditionFalse && condition.Reason != reasons.Preparing && condition.Reason != reasons.Failed
		if waits {
			return false, fmt.Errorf("%s keeps its credential (%s): %s", i.title(token), condition.Reason, condition.Message)
		}
		return token.Status.Rotation != nil && token.Status.Rotation.Requested == requested, nil
	})
	switch {
	case wait.Interrupted(err) && !errors.Is(ctx.Err(), context.Canceled):
		return timedOut{fmt.Errorf("%s has no new credential after %s: check that the hub is running and not older than muster, and run "+
			"muster explain tokens %s", i.title(token), issuedWithin, view.NameOf(token))}
	case err != nil:
		return err
	}
	p := &prose{out: i.ErrOut}
	p.line("%s: %s.", i.title(token), condition.Message)
	return p.err
}
