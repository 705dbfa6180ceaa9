package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// The goals of muster wait.
const (
	goalReady  = "ready"
	goalJoined = "joined"
	goalGone   = "gone"
)

var goals = []string{goalReady, goalJoined, goalGone}

// waiter is the command muster wait.
type waiter struct {
	changer
	goal string
}

func newWait(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	w := &waiter{changer: changer{IOStreams: streams, access: h, looked: lookedFor{"muster wait", kindsNamed("members")}}}
	command := &cobra.Command{
		Use:   "wait [clusters|memberclusters] NAME",
		Short: "Wait until a member is ready, has joined, or is gone",
		Long: `Wait until a member is ready, has joined, or is gone, and print each state before. A member
that does not exist yet is waited for, too. The exit code is 4 after --timeout.`,
		Example: `  # Wait in a script until a new cluster is ready
  muster wait clusters/web --for ready --timeout 10m

  # Wait until a member has left
  muster wait clusters/web --for gone`,
		Args:              takes(1, 2, "the name of a member"),
		ValidArgsFunction: h.completeNames(w.looked),
		RunE:              func(command *cobra.Command, args []string) error { return w.run(command.Context(), args) },
	}
	command.Flags().StringVar(&w.goal, "for", goalReady, "State to wait for: "+strings.Join(goals, ", "))
	command.Flags().DurationVar(&w.timeout, "timeout", 5*time.Minute, "Time to wait")
	complete(command, "for", cobra.FixedCompletions(goals, cobra.ShellCompDirectiveNoFileComp))
	return h.acceptAllNamespaces(command)
}

func (w *waiter) run(ctx context.Context, args []string) error {
	switch {
	case !slices.Contains(goals, w.goal):
		return usageError{fmt.Errorf("--for %s: use %s", w.goal, strings.Join(goals, ", "))}
	case w.timeout <= 0:
		return usageError{fmt.Errorf("--timeout %s: use a positive time", w.timeout)}
	}
	w.progress = w.newProgress(w.Out)
	begun := time.Now()
	member, hub, err := w.untilExists(ctx, args)
	if err != nil || member == nil {
		return err
	}
	w.timeout = max(w.timeout-time.Since(begun), lookEvery)
	return w.follow(ctx, hub, member, w.goal, func(o client.Object, gone bool) (bool, error) {
		if gone && w.goal != goalGone {
			return false, fmt.Errorf("%s is gone", w.title(o))
		}
		return gone || w.reached(o), nil
	})
}

// untilExists returns the member, once it exists. It returns nil if the member has to be gone and
// does not exist.
func (w *waiter) untilExists(ctx context.Context, args []string) (member client.Object, hub client.Client, err error) {
	var missing error
	err = wait.PollUntilContextTimeout(ctx, lookEvery, w.timeout, true, func(ctx context.Context) (bool, error) {
		var failed error
		member, hub, failed = w.subject(ctx, w.looked, args)
		if failed == nil || !isMissing(failed) {
			return failed == nil, failed
		}
		missing = failed
		w.progress.step("%s does not exist", strings.Join(args, " "))
		return w.goal == goalGone, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return nil, nil, timedOut{fmt.Errorf("timed out after %s: %w", w.timeout, cmp.Or(missing, err))}
	}
	if ctx.Err() != nil {
		return nil, nil, errInterrupted
	}
	if missing != nil && w.goal == goalGone {
		return nil, nil, err
	}
	return member, hub, err
}

// reached reports whether a member is in the state to wait for.
func (w *waiter) reached(o client.Object) bool {
	var status membership.Status
	switch member := o.(type) {
	case *fleet.Cluster:
		status = membership.ClusterStatus(&member.Status, nil)
	case *clusterv1beta1.MemberCluster:
		status = membership.MemberClusterStatus(&member.Status)
	}
	switch w.goal {
	case goalReady:
		return view.State(o) == view.StateReady
	case goalJoined:
		return status.Agent == membership.AgentOnline || status.Agent == membership.AgentUnhealthy
	}
	return false
}
