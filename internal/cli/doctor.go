package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/rollout"
	"github.com/muster-fleet/muster/internal/view"
)

// doctor is the command muster doctor.
type doctor struct {
	genericiooptions.IOStreams
	*access
	hubContext string
}

func newDoctor(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	d := &doctor{IOStreams: streams, access: h}
	command := &cobra.Command{
		Use:   "doctor [--context CLUSTER] [--hub-context HUB]",
		Short: "Look whether clusters have what it takes to be a hub, or a member",
		Long: `doctor looks at the cluster of the context, and at the hub of --hub-context: whether its name is known, it takes connections, its certificate can be trusted, its clock and its
version will do and your rights suffice; on a hub, whether the kinds of the fleet are served and somebody leads; on a member, whether the agent runs and for which hub. It asks
from this machine, and changes nothing. An answer is ok, WRONG with what to do, or unknown if it could not be asked.

It ends with 1 if something is wrong.`,
		Example: `  # Before a cluster joins, and when it does not.
  muster doctor --context edge-1 --hub-context hub

  # A hub alone.
  muster doctor --hub-context hub`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return d.run(command.Context()) },
	}
	command.Flags().StringVar(&d.hubContext, "hub-context", "", "the context of the hub")
	complete(command, "hub-context", h.contexts)
	return command
}

func (d *doctor) run(ctx context.Context) error {
	wrong := 0
	look := func(a *access, more func(*checked) []check) error {
		p := &prose{out: d.Out}
		p.line("%s", a.contextName())
		cluster, err := a.checked()
		var checks []check
		if err != nil {
			checks = []check{{"kubeconfig", true, func(context.Context) (string, error) { return "", err }}}
		} else {
			checks = append(cluster.reachable(), more(cluster)...)
		}
		found, err := runChecks(ctx, d.Out, checks)
		wrong += found
		return err
	}
	if d.hubContext == "" || *d.Context != "" {
		d.role = "cluster " + d.contextName()
		if err := look(d.access, func(c *checked) []check { return append(c.mayInstallAgent(), c.agentRuns()...) }); err != nil {
			return err
		}
	}
	if d.hubContext != "" {
		if err := look(d.in(d.hubContext, "the hub"), (*checked).hubRuns); err != nil {
			return err
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%d of these checks found something wrong", wrong)
	}
	return nil
}

// mayInstallAgent checks the rights that it takes to install an agent.
func (c *checked) mayInstallAgent() []check {
	return []check{c.may("install the agent",
		right{"create", "", "namespaces", ""}, right{"create", "", "secrets", naming.SystemNamespace},
		right{"create", "rbac.authorization.k8s.io", "clusterrolebindings", ""}, right{"escalate", "rbac.authorization.k8s.io", "clusterroles", ""})}
}

// agentRuns checks whether an agent runs, of either kind, and for whom.
func (c *checked) agentRuns() []check {
	return []check{{"agent", false, func(ctx context.Context) (string, error) {
		for _, agent := range []types.NamespacedName{clusterAgent, memberAgent} {
			says, found, err := c.agent(ctx, agent)
			if err != nil || found {
				return says, err
			}
		}
		return "none is installed", nil
	}}}
}

// saysJoined is how an agent begins that has joined, although the Pod that it has replaced may still end.
const saysJoined = "joined as "

func (c *checked) agent(ctx context.Context, agent types.NamespacedName) (says string, found bool, err error) {
	var cause *rollout.Cause
	ready := false
	_ = wait.PollUntilContextTimeout(ctx, lookEvery, startsWithin, true, func(ctx context.Context) (bool, error) { // it may be replaced at the moment, by another version
		cause, ready, err = c.causeOf(ctx, agent.Namespace, agent.Name)
		return ready || cause != nil && cause.Reason == rollout.Gone, err
	})
	said := ""
	if err == nil && !ready && cause == nil {
		said = view.Or(c.agentSays(ctx, agent))
	}
	switch {
	case err != nil:
		return "", false, notAsked{fmt.Errorf("whether an agent runs cannot be seen: %w", err)}
	case ready, strings.HasPrefix(said, saysJoined):
		return fmt.Sprintf("Deployment %s runs%s", agent, c.agentsHub(ctx)), true, nil
	case cause == nil:
		return "", true, fmt.Errorf("the agent %s runs and has not joined: %s", agent, said)
	case cause.Reason == rollout.Gone:
		return "", false, nil
	}
	return "", true, fmt.Errorf("the agent %s does not run: %s", agent, cause.Message)
}

// agentsHub names the hub for which an agent works, if that can be seen.
func (c *checked) agentsHub(ctx context.Context) string {
	is, err := c.installedFor(ctx)
	if err != nil || is.server == "" {
		return ""
	}
	return fmt.Sprintf(", as Cluster %s of the hub at %s", is.record, is.server)
}

// installedAgent is the hub for which the agent of a Cluster works, as which Cluster, and its credential there. It is empty if there is none that works for any.
type installedAgent struct {
	server, token string
	record        types.NamespacedName
}

func (c *checked) installedFor(ctx context.Context) (is installedAgent, err error) {
	secret := &corev1.Secret{}
	err = c.Get(ctx, client.ObjectKey{Namespace: naming.SystemNamespace, Name: naming.AgentSecret}, secret)
	if err != nil {
		return is, client.IgnoreNotFound(err)
	}
	config, err := clientcmd.Load(secret.Data["kubeconfig"])
	if err != nil {
		return is, nil //nolint:nilerr // an agent that cannot read it joins anew
	}
	for _, of := range config.Clusters {
		is.server = of.Server
	}
	is.token = string(secret.Data["token"]) // Muster's agent keeps it beside the kubeconfig, which Rancher Fleet's has it in
	for _, user := range config.AuthInfos {
		is.token = cmp.Or(user.Token, is.token)
	}
	is.record = types.NamespacedName{Namespace: string(secret.Data["clusterNamespace"]), Name: string(secret.Data["clusterName"])}
	return is, nil
}
