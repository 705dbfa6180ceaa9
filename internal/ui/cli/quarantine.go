package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/fleet/decision"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

func newQuarantine(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	q := &quarantine{changer: &changer{
		IOStreams: streams, access: h, looked: lookedFor{"muster quarantine", kindsNamed("members")}, timeout: time.Minute,
	}}
	command := q.command(&cobra.Command{
		Use:    "quarantine [clusters|memberclusters] NAME",
		Hidden: true, // for lack of room on the page: the help of muster cordon and muster revoke names it
		Short:  "Leave a member only its heartbeat",
		Long: `Leave a member only its heartbeat and its report. The hub takes all other rights of its agent
away at once: Bundles, placed objects, their contents and values. What is on the cluster
stays. Nothing is added, changed or removed there, and the agent needs no new token to come
back. You need the verb quarantine on clusters or memberclusters.

"muster cordon" keeps away only new deliveries, and "muster revoke" also ends the heartbeat.

On a terminal the command waits for your answer; --yes quarantines at once.`,
		Example: `  # Quarantine a member, and say why
  muster quarantine clusters/web --reason "suspicious traffic, see ticket 4711"

  # Let the member get its deliveries again
  muster quarantine clusters/web --undo`,
	}, q.run)
	flags := q.takesReason(command).Flags()
	flags.BoolVar(&q.undo, "undo", false, "End the quarantine of a member")
	flags.BoolVar(&q.yes, "yes", false, "Quarantine without a question")
	flags.BoolVar(&q.dryRun, "dry-run", false, "Only print the change")
	return command
}

// quarantine is the command muster quarantine.
type quarantine struct {
	*changer
	undo, yes, dryRun bool
}

func (q *quarantine) run(ctx context.Context, hub client.Client, o client.Object) error {
	d, what := decision.Quarantine.Because(q.reason), "quarantined"
	if q.undo {
		d, what = decision.Unquarantine, "out of quarantine"
	}
	switch {
	case q.dryRun:
		return q.line("%s would be %s.", q.title(o), what)
	case !q.undo && !q.yes && !membership.Quarantined(o):
		question := q.title(o) + " keeps its heartbeat and its workloads, and loses everything else at once."
		if err := q.askOnTerminal(ctx, question, q.title(o)); err != nil {
			return err
		}
	}
	if err := q.decide(ctx, hub, o, d); err != nil {
		return err
	}
	return q.follow(ctx, hub, o, what, func(o client.Object, gone bool) (bool, error) {
		shown, _, _ := membership.QuarantineShown(o)
		return gone || shown == reasons.Quarantined && !q.undo || shown == "" && q.undo, nil
	})
}
