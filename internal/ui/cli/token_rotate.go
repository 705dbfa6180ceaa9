package cli

import (
	"cmp"
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
	i, overlap := &issuer{IOStreams: streams, access: h}, fleet.DefaultRotateOverlap
	command := i.ofToken(&cobra.Command{
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
	}, func(ctx context.Context, hub client.Client, token *fleet.ClusterRegistrationToken) error {
		if overlap < 0 || overlap > fleet.MaxRotateOverlap {
			return usageError{fmt.Errorf("--overlap %s: set a duration from 0s to 720h", overlap)}
		}
		return i.rotate(ctx, hub, token, overlap)
	})
	command.Flags().DurationVar(&overlap, "overlap", overlap, "Remaining life of the previous credential, up to 720h")
	return command
}

// rotate requests a rotation, waits for it, and tells when the previous credential ends.
func (i *issuer) rotate(ctx context.Context, hub client.Client, token *fleet.ClusterRegistrationToken, overlap time.Duration) error {
	before := cmp.Or(kube.FindCondition(token.Status.Conditions, fleet.ConditionRotated), &fleet.Condition{}).DeepCopy()
	requested := time.Now().UTC().Format(time.RFC3339Nano)
	annotations := map[string]any{fleet.AnnotationRotate: requested, fleet.AnnotationRotateOverlap: overlap.String()}
	if err := kube.PatchMetadata(ctx, hub, token, "annotations", annotations); err != nil {
		return fmt.Errorf("changing %s: %w", i.title(token), err)
	}
	condition, refused := &fleet.Condition{}, error(nil)
	err := wait.PollUntilContextTimeout(ctx, lookEvery, issuedWithin, true, func(ctx context.Context) (bool, error) {
		if err := hub.Get(ctx, client.ObjectKeyFromObject(token), token); err != nil {
			return false, err
		}
		if condition = kube.FindCondition(token.Status.Conditions, fleet.ConditionRotated); condition == nil {
			return false, nil
		}
		refused = nil
		if condition.Status == corev1.ConditionFalse && condition.Reason != reasons.Preparing && condition.Reason != reasons.Failed {
			refused = fmt.Errorf("%s keeps its credential (%s): %s", i.title(token), condition.Reason, condition.Message)
			if *condition != *before { // else it may be about an earlier request
				return false, refused
			}
		}
		return token.Status.Rotation != nil && token.Status.Rotation.Requested == requested, nil
	})
	switch {
	case wait.Interrupted(err) && refused != nil:
		return refused
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
