package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/ui/explain"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// settlesWithin is how long a member that has joined is given to be ready, too.
const settlesWithin = 10 * time.Second

// joiner is the command muster join. Its access is that to the cluster that joins.
type joiner struct {
	genericiooptions.IOStreams
	*access
	chartValues
	hubContext          string
	name, id            string
	labels              map[string]string
	member              bool
	token, hubURL, caIn string
	timeout             time.Duration
	// moves says that a cluster which is a member elsewhere may be taken from there: as the Cluster moved, if that is said. former is what it was a member as.
	moves         bool
	moved, former string
	// leavesHub reports whether the cluster is a member of another hub, inPlace of the one that was in the place of this one.
	leavesHub, inPlace bool

	progress progress
	// joined is when the member was first seen to have joined.
	joined time.Time
}

func newJoin(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	j := &joiner{IOStreams: streams, access: h}
	command := &cobra.Command{
		Use:   "join --context CLUSTER --hub-context HUB",
		Short: "Make a cluster a member of the fleet, to the end",
		Long: `join registers the cluster of the context with the hub and installs the agent there, which it brings along. It looks first whether that can work, makes what it takes, shows
what becomes of it, and ends when the hub has heard of the agent; else it says what is wrong. Given again it changes nothing, or does what was not done yet.

The cluster becomes a Cluster of a workspace, or with --member a MemberCluster. It acts on both sides with the rights of the kubeconfig's contexts. Where the hub cannot be
asked, --token and --hub-url stand for it: muster token create prints that line.`,
		Example: `  muster join --context edge-1 --hub-context hub
  muster join --context edge-1 --hub-context hub --namespace clusters --name edge-1 --labels env=prod,region=eu

  # As a MemberCluster.
  muster join --context edge-1 --hub-context hub --member --name edge-1

  # Without access to the hub, by a token that somebody made there.
  muster join --context edge-1 --token TOKEN --hub-url https://hub.example.com:6443 --hub-ca BASE64`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return interruptible(command.Context(), j.run(command.Context()))
		},
	}
	j.flags(command)
	flags := command.Flags()
	flags.BoolVar(&j.member, "member", false, "join as a MemberCluster")
	return command
}

func newMove(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	j := &joiner{IOStreams: streams, access: h, moves: true}
	command := &cobra.Command{
		Use:   "move [NAME] --context CLUSTER --hub-context HUB",
		Short: "Take a member to another workspace, or to another hub",
		Long: `move registers the cluster of the context anew, as join does, though it is the Cluster of another workspace or hub. Its agent goes on as that until the new hub has let
it in, and then leaves there by itself. A NAME is that of the Cluster which it is now, and nothing is moved if it is another one. Delete
the record that it leaves when you have seen that: muster leave. What was delivered stays on the cluster, and nobody looks after it, unless the record says before that it is
to be removed (annotation muster/leave-policy=Delete).

A cluster with the agent of Rancher Fleet, whose hub is another one, moves by the same line: Muster's chart replaces the chart of that name, what was delivered stays, and the
credential of the agent is kept on the cluster, so that muster migrate --from rancher-fleet --back goes back. muster migrate does the same, also with --dry-run.`,
		Example: `  # To another workspace of the same hub.
  muster move --context edge-1 --hub-context hub --namespace retail

  # Only if the cluster is that one.
  muster move clusters/edge-1 --context edge-1 --hub-context hub --namespace retail

  # To another hub, also from a hub of Rancher Fleet.
  muster move --context edge-1 --hub-context new-hub`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions, // the hub that knows the name may be a third one
		RunE: func(command *cobra.Command, args []string) error {
			j.moved = strings.Join(args, "")
			return interruptible(command.Context(), j.run(command.Context()))
		},
	}
	j.flags(command)
	return command
}

func (j *joiner) flags(command *cobra.Command) {
	j.addFlags(command, "of the agent")
	flags := command.Flags()
	flags.StringVar(&j.hubContext, "hub-context", "", "the context of the hub")
	flags.StringVar(&j.name, "name", "", "the name of the Cluster, which may be there already; of the MemberCluster, if not that of the context")
	flags.StringVar(&j.id, "client-id", "", "the client ID that the Cluster has or gets; the UID of the cluster's namespace kube-system if not said")
	flags.StringToStringVar(&j.labels, "labels", nil, "labels of the member, such as env=prod,region=eu")
	flags.StringVar(&j.token, "token", "", "a registration token, where the hub cannot be asked")
	flags.StringVar(&j.hubURL, "hub-url", "", "the address of the hub's API server as the cluster reaches it, if not the one that the hub knows, or that of its context")
	flags.StringVar(&j.caIn, "hub-ca", "", "the CA of the hub's API server, as PEM or as its base64, with --hub-url")
	flags.DurationVar(&j.timeout, "timeout", 5*time.Minute, "how long to wait until it has joined")
	complete(command, "hub-context", j.contexts)
}

func (j *joiner) validate() error {
	switch {
	case j.hubContext == "" && j.token == "":
		return errors.New("say where the hub is: --hub-context CONTEXT, or --token and --hub-url as muster token create prints them on the hub")
	case j.hubContext != "" && j.token != "":
		return errors.New("--hub-context makes a token of its own: say either that or --token")
	case j.token != "" && j.hubURL == "":
		return errors.New("say with --token where the hub is: --hub-url https://HOST:PORT")
	case j.token != "" && (j.member || j.name != ""):
		return errors.New("a registration token says which Cluster registers: --name and --member need --hub-context")
	case j.member && j.id != "":
		return errors.New("a MemberCluster has no client ID: say --name")
	case j.timeout <= 0:
		return errors.New("--timeout is more than 0: an agent that has not joined is no member")
	case j.member:
		return problemOf(j.memberName())
	}
	return nil
}

// memberName is the name of the MemberCluster.
func (j *joiner) memberName() string { return cmp.Or(j.name, j.contextName()) }

// problemOf is why a MemberCluster cannot have a name; nil if it can.
func problemOf(name string) error {
	problems := validation.IsDNS1123Label(name)
	if len(name) > naming.MaxMemberClusterName {
		problems = []string{fmt.Sprintf("it has more than %d characters", naming.MaxMemberClusterName)}
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("%s cannot be the name of a MemberCluster, say another one by --name: %s", name, problems[0])
}

func (j *joiner) run(ctx context.Context) error {
	if err := j.validate(); err != nil {
		return err
	}
	j.progress = newProgress(j.Out)
	j.role = "cluster " + j.contextName()
	cluster, err := j.checked()
	if err != nil {
		return err
	}
	if err := require(ctx, append(cluster.reachable(), cluster.mayInstallAgent()...)); err != nil {
		return err
	}
	if j.token != "" {
		return j.joinByToken(ctx, cluster)
	}
	hub, err := j.in(j.hubContext, "the hub").checked()
	if err != nil {
		return err
	}
	if err := require(ctx, append(hub.reachable(), hub.hubRuns()...)); err != nil {
		return err
	}
	if _, err := hub.sameVersion().run(ctx); err != nil && !errors.As(err, &notAsked{}) {
		fmt.Fprintf(j.ErrOut, "Warning: %s\n", err)
	}
	id, err := cluster.tellApart(ctx, hub)
	if err != nil {
		return err
	}
	j.id = cmp.Or(j.id, id)
	ctx, cancel := context.WithTimeout(ctx, j.timeout)
	defer cancel()
	if j.member {
		err = j.joinMember(ctx, cluster, hub)
	} else {
		err = j.joinCluster(ctx, cluster, hub)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("not done after %s: %w; the command can be given again", j.timeout, err)
	}
	return err
}

// itself is why a hub is not made a member of itself.
const itself = "the hub is a member of itself already (Cluster fleet-local/local): say another --context"

// tellApart returns the ID of a cluster, and refuses the hub itself, which two contexts of one cluster easily ask for by mistake.
func (c *checked) tellApart(ctx context.Context, hub *checked) (id string, err error) {
	if id, err = c.clusterID(ctx); err != nil {
		return "", err
	}
	if of, err := hub.clusterID(ctx); err == nil && of == id { // who may not see that is told by the hub
		return "", fmt.Errorf("the contexts %s and %s lead to the same cluster, and "+itself, c.contextName(), hub.contextName())
	}
	return id, nil
}

// settled says whether a member that has joined is ready, or not soon: what is to be on it is brought there now.
func (j *joiner) settled(state string) bool {
	if j.joined.IsZero() {
		j.joined = time.Now()
	}
	return state == view.StateReady || time.Since(j.joined) > settlesWithin
}

// show prints the row of a member, which has joined, and gives it the labels that it has not got by that.
func (j *joiner) show(ctx context.Context, hub *checked, o client.Object) error {
	wanting := map[string]any{}
	for key, value := range j.labels {
		if has, ok := o.GetLabels()[key]; !ok || has != value {
			wanting[key] = value
		}
	}
	if len(wanting) > 0 {
		if err := patchMetadata(ctx, hub, o, "labels", wanting); err != nil {
			return fmt.Errorf("%s has joined; labelling it: %w", j.title(o), err)
		}
		j.progress.step("%s has the labels %s", j.title(o), strings.Join(slices.Sorted(maps.Keys(wanting)), ", "))
	}
	k, _ := kindOf(j.kindOfObject(o))
	t := newTable(j.Out, k, false)
	t.printHeader()
	t.print(view.Row(o, time.Now()))
	return errors.Join(j.progress.err, t.flush())
}

// failed explains why a cluster has not joined: what the hub says, and what the agent, or why one of them could not be asked in the end.
func (j *joiner) failed(ctx context.Context, unseen error, cluster *checked, agent types.NamespacedName, said ...client.Object) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answersWithin)
	defer cancel()
	findings := explain.Of(said...)
	for _, f := range findings[:min(shownFindings, len(findings))] {
		j.progress.finding(f, true)
	}
	if says := cluster.agentSays(ctx, agent); says != "" {
		j.progress.line("The agent says: %s", says)
	}
	why := ""
	if unseen != nil {
		why = ": " + unseen.Error()
	}
	return fmt.Errorf("the cluster has not joined after %s%s"+canBeRepeated, j.timeout, why)
}
