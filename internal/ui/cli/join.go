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

	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/ui/explain"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// settlesWithin bounds the wait for a new member to become ready.
const settlesWithin = 10 * time.Second

// joiner is the command muster join. Its access is to the joining cluster.
type joiner struct {
	genericiooptions.IOStreams
	*access
	chartValues
	hubContext          string
	name, id            string
	labels              map[string]string
	member              bool
	token, hubURL, caIn string
	// hubKubeconfig is the file with the agent's kubeconfig of the hub; tokenName names the
	// registration token for a Cluster.
	hubKubeconfig, tokenName string
	timeout                  time.Duration
	// moves allows taking over a member of another hub or workspace. moved is the expected
	// Cluster, if given. former is the earlier membership.
	moves         bool
	moved, former string
	// leavesHub reports whether the cluster is a member of another hub. inPlace reports whether
	// it is a member of the hub before a migration in place.
	leavesHub, inPlace bool

	progress progress
	// joined is the time of the hub's first report that the member has joined.
	joined time.Time
}

func newJoin(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	j := &joiner{IOStreams: streams, access: h}
	command := &cobra.Command{
		Use:   "join --context CLUSTER --hub-context HUB",
		Short: "Register a cluster as a member and install the agent",
		Long: `Register the cluster of the current context with the hub, install the agent, and wait for
its first heartbeat. The command checks both clusters before it changes them, and prints
each step. If a step fails, it prints the cause. Running join again completes what is
missing, and changes nothing else.

The cluster becomes a Cluster in a workspace, or a MemberCluster with --member. The
command uses the rights of both kubeconfig contexts. Without access to the hub, use the
line from "muster token create", with --token and --hub-url.

With --hub-kubeconfig, the agent joins with the identity in a kubeconfig, such as a
cloud's, and needs no token. An exec entry in the file runs its program in the agent's
container. An administrator of the hub grants the identity its rights before.`,
		Example: `  # Join as a Cluster
  muster join --context edge-1 --hub-context hub

  # Join as a Cluster with a name and labels
  muster join --context edge-1 --hub-context hub --namespace clusters --name edge-1 --labels env=prod,region=eu

  # Join as a MemberCluster
  muster join --context edge-1 --hub-context hub --member --name edge-1

  # Join with a registration token, without access to the hub
  muster join --context edge-1 --token TOKEN --hub-url https://hub.example.com:6443 --hub-ca BASE64

  # Join as the MemberCluster of a cloud's identity
  muster join --context edge-1 --member --name edge-1 --hub-kubeconfig hub.yaml`,
		Args: takesNone,
		RunE: func(command *cobra.Command, _ []string) error {
			return interruptible(command.Context(), j.run(command.Context()))
		},
	}
	j.flags(command)
	flags := command.Flags()
	flags.BoolVar(&j.member, "member", false, "Join as a MemberCluster")
	flags.StringVar(&j.hubKubeconfig, "hub-kubeconfig", "", "File with a kubeconfig of the hub for the agent, to join without a token")
	flags.StringVar(&j.tokenName, "token-name", "", "Name of the registration token whose limits apply to --hub-kubeconfig, for a Cluster")
	return command
}

func newMove(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	j := &joiner{IOStreams: streams, access: h, moves: true}
	command := &cobra.Command{
		Use:   "move [NAME] --context CLUSTER --hub-context HUB",
		Short: "Move a member to another workspace or hub",
		Long: `Register the cluster of the current context again, in another workspace or with another
hub. The agent keeps working for its present Cluster until the new hub accepts it, and
then leaves by itself. With a NAME, the command moves only the Cluster of that name.

The deliveries stay on the cluster, and no hub updates them any more. To remove them,
annotate the Cluster with muster/leave-policy=Delete before the move. After the move,
delete the old Cluster with "muster leave".

A cluster of a Rancher Fleet hub moves in the same way: Muster's chart replaces the chart
of the agent. The old credential stays on the cluster. To go back, use
"muster migrate --from rancher-fleet --back". To print the steps first, use
"muster migrate" with --dry-run.`,
		Example: `  # Move to another workspace of the same hub
  muster move --context edge-1 --hub-context hub --namespace retail

  # Move only if the cluster is the Cluster clusters/edge-1
  muster move clusters/edge-1 --context edge-1 --hub-context hub --namespace retail

  # Move to another hub, also from a Rancher Fleet hub
  muster move --context edge-1 --hub-context new-hub`,
		Args:              takes(0, 1, "at most one name"),
		ValidArgsFunction: cobra.NoFileCompletions, // a third hub may have the name
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
	flags.StringVar(&j.hubContext, "hub-context", "", "Context of the hub")
	flags.StringVar(&j.name, "name", "", "Name of the Cluster, new or existing, or of the MemberCluster (default: the context)")
	flags.StringVar(&j.id, "client-id", "", "Client ID of the Cluster (default: the UID of the namespace kube-system)")
	flags.StringToStringVar(&j.labels, "labels", nil, "Labels of the member, such as env=prod,region=eu")
	flags.StringVar(&j.token, "token", "", "Registration token, to join without access to the hub")
	flags.StringVar(&j.hubURL, "hub-url", "", "Address of the hub's API server for the cluster (default: from the hub, else from its context)")
	flags.StringVar(&j.caIn, "hub-ca", "", "CA of the hub's API server for --hub-url, as PEM or as base64 of PEM")
	flags.DurationVar(&j.timeout, "timeout", 5*time.Minute, "Time to wait for the first heartbeat")
	complete(command, "hub-context", j.contexts)
}

func (j *joiner) validate() error {
	if j.hubKubeconfig != "" || j.tokenName != "" {
		return j.validateKubeconfig()
	}
	switch {
	case j.hubContext == "" && j.token == "":
		return errors.New("the hub is missing: use --hub-context CONTEXT, or --token and --hub-url from muster token create")
	case j.hubContext != "" && j.token != "":
		return errors.New("--hub-context and --token exclude each other: use one of the two")
	case j.token != "" && j.hubURL == "":
		return errors.New("--token needs the address of the hub: use --hub-url https://HOST:PORT")
	case j.token != "" && (j.member || j.name != ""):
		return errors.New("a registration token fixes the Cluster: --name and --member need --hub-context")
	case j.member && j.id != "":
		return errors.New("a MemberCluster has no client ID: use --name")
	case j.timeout <= 0:
		return errors.New("--timeout must be more than 0")
	case j.member:
		return problemOf("MemberCluster", j.memberName(), naming.MaxMemberClusterName)
	case j.name != "":
		return problemOf("Cluster", j.name, validation.DNS1123LabelMaxLength)
	}
	return nil
}

// memberName returns the name of the MemberCluster.
func (j *joiner) memberName() string { return cmp.Or(j.name, j.contextName()) }

// problemOf returns an error if the name is not valid for a kind of member.
func problemOf(kind, name string, most int) error {
	problems := validation.IsDNS1123Label(name)
	if len(name) > most {
		problems = []string{fmt.Sprintf("it has more than %d characters", most)}
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("%s is not a valid name of a %s, use another --name: %s", name, kind, problems[0])
}

func (j *joiner) run(ctx context.Context) error {
	if err := j.validate(); err != nil {
		return err
	}
	j.progress = j.newProgress(j.Out)
	j.role = "cluster " + j.contextName()
	cluster, err := j.checked()
	if err != nil {
		return err
	}
	if err := require(ctx, append(cluster.reachable(), cluster.mayInstallAgent()...)); err != nil {
		return err
	}
	switch {
	case j.token != "":
		return j.joinByToken(ctx, cluster)
	case j.hubKubeconfig != "":
		return j.joinByKubeconfig(ctx, cluster)
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
	return within(ctx, j.timeout, func(ctx context.Context) error {
		if j.member {
			return j.joinMember(ctx, cluster, hub)
		}
		return j.joinCluster(ctx, cluster, hub)
	})
}

// itself is the error for a hub as its own member.
const itself = "the hub is a member of itself already (Cluster fleet-local/local): use another --context"

// tellApart returns the ID of a cluster. It refuses the hub itself: two contexts of one cluster
// are an easy mistake.
func (c *checked) tellApart(ctx context.Context, hub *checked) (id string, err error) {
	if id, err = c.clusterID(ctx); err != nil {
		return "", err
	}
	if of, err := hub.clusterID(ctx); err == nil && of == id { // without the permission, the hub reports the problem
		return "", fmt.Errorf("the contexts %s and %s lead to the same cluster, and "+itself, c.contextName(), hub.contextName())
	}
	return id, nil
}

// settled reports whether a member is ready, or not ready soon. The first deliveries take a
// moment.
func (j *joiner) settled(state string) bool {
	if j.joined.IsZero() {
		j.joined = time.Now()
	}
	return state == view.StateReady || time.Since(j.joined) > settlesWithin
}

// show prints the row of a new member, and sets its missing labels.
func (j *joiner) show(ctx context.Context, hub *checked, o client.Object) error {
	wanting := map[string]any{}
	for key, value := range j.labels {
		if has, ok := o.GetLabels()[key]; !ok || has != value {
			wanting[key] = value
		}
	}
	if len(wanting) > 0 {
		if err := kube.PatchMetadata(ctx, hub, o, "labels", wanting); err != nil {
			return fmt.Errorf("setting the labels of %s, which has joined: %w", j.title(o), err)
		}
		j.progress.step("%s has the labels %s", j.title(o), strings.Join(slices.Sorted(maps.Keys(wanting)), ", "))
	}
	k, _ := kindOf(j.kindOfObject(o))
	t := newTable(j.Out, k, false, j.styleOf(j.Out))
	t.printHeader()
	t.print(view.Row(o, time.Now()))
	return errors.Join(j.progress.err, t.flush())
}

// failed returns the cause of a failed join, from the hub and from the agent.
func (j *joiner) failed(ctx context.Context, unseen error, cluster *checked, agent types.NamespacedName, objects ...client.Object) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answersWithin)
	defer cancel()
	findings := explain.Of(objects...)
	for _, f := range findings[:min(shownFindings, len(findings))] {
		j.progress.finding(explain.Same{Finding: f}, true)
	}
	if says := cluster.agentSays(ctx, agent); says != "" {
		j.progress.line("Status of the agent: %s", says)
	}
	why := ""
	if unseen != nil {
		why = ": " + unseen.Error()
	}
	return fmt.Errorf("the cluster has not joined after %s%s"+canBeRepeated, j.timeout, why)
}
