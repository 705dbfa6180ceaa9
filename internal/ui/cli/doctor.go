package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	semver "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/rollout"
	"github.com/muster-fleet/muster/internal/ui/view"
	"github.com/muster-fleet/muster/internal/version"
)

// doctor is the command muster doctor.
type doctor struct {
	genericiooptions.IOStreams
	*access
	hubContext string
	// leftovers finds leftovers in place of the checks; the other fields belong to it.
	leftovers, remove, yes, dryRun bool
}

func newDoctor(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	d := &doctor{IOStreams: streams, access: h}
	command := &cobra.Command{
		Use:   "doctor [--context CLUSTER] [--hub-context HUB]",
		Short: "Check whether a cluster can be a hub or a member",
		Long: `Check the cluster of the current context, and the hub of --hub-context, from this machine.
Without --remove, the command changes nothing.

- Each cluster: name resolution, connection, certificate, clock, version, and your rights.
- The hub: the kinds of the fleet, the leader, its version, and the receivers of notifications.
- The member: the agent, and the hub of the agent.

With --leftovers, the command lists the objects that an uninstallation by hand left on each
cluster: finalizers, namespaces, policies, rights, definitions and Secrets. With --remove, it
removes them after your answer, but only objects that are provably Muster's and unused.

Each check prints ok, WRONG with a remedy, or unknown if the check was not possible.
The exit status is 1 if a check found a problem.`,
		Example: `  # Check a cluster before it joins, or if it cannot join
  muster doctor --context edge-1 --hub-context hub

  # Check the hub alone
  muster doctor --hub-context hub

  # List the leftovers of an agent, then remove them
  muster doctor --leftovers --context edge-1
  muster doctor --leftovers --context edge-1 --remove --yes`,
		Args: takesNone,
		RunE: func(command *cobra.Command, _ []string) error { return d.run(command.Context()) },
	}
	command.Flags().StringVar(&d.hubContext, "hub-context", "", "Context of the hub")
	complete(command, "hub-context", h.contexts)
	command.Flags().BoolVar(&d.leftovers, "leftovers", false, "Find what an uninstallation by hand left")
	command.Flags().BoolVar(&d.remove, "remove", false, "Remove the leftovers, with --leftovers")
	command.Flags().BoolVar(&d.yes, "yes", false, "Remove without a question")
	command.Flags().BoolVar(&d.dryRun, "dry-run", false, "Only print what --remove would remove")
	return h.acceptAllNamespaces(command)
}

func (d *doctor) run(ctx context.Context) error {
	if d.leftovers {
		return d.findLeftovers(ctx)
	} else if d.remove || d.yes || d.dryRun {
		return usageError{errors.New("--remove, --yes and --dry-run need --leftovers")}
	}
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
		ofHub := func(c *checked) []check { return append(c.hubRuns(), c.sameVersion(), c.notifies()) }
		if err := look(d.in(d.hubContext, "the hub"), ofHub); err != nil {
			return err
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%w: %d of these checks failed", errNotWell, wrong)
	}
	return nil
}

// sameVersion compares the minor version of the hub's image with this program's.
func (c *checked) sameVersion() check {
	return check{"version", false, func(ctx context.Context) (string, error) {
		deployment := &appsv1.Deployment{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: naming.SystemNamespace, Name: hubDeployment}, deployment); err != nil {
			return "", notAsked{fmt.Errorf("reading the version of the hub: %w", err)}
		}
		image := imageOfDeployment(deployment)
		switch has, own := tagOf(image), version.Semantic(version.Version); differ(has, own) {
		case 1:
			return "", fmt.Errorf("muster is of version %s and the hub of %s: use muster of the hub's version", own, has)
		case -1:
			return "", fmt.Errorf("the hub is of version %s and muster of %s: muster init upgrades the hub, or use muster of its version", has, own)
		}
		return "the hub runs " + image, nil
	}}
}

// imageOfDeployment returns the image of the first container, or "".
func imageOfDeployment(d *appsv1.Deployment) (image string) {
	for _, container := range d.Spec.Template.Spec.Containers {
		image = cmp.Or(image, container.Image)
	}
	return image
}

func tagOf(image string) string { return image[strings.LastIndex(image, ":")+1:] }

// differ returns 1 for a newer minor version than muster's, -1 for an older one, and 0
// otherwise. Development versions count as equal.
func differ(installed, own string) int {
	minor := func(of string) string {
		parsed, err := semver.ParseSemantic(of)
		if err != nil {
			return of
		}
		return fmt.Sprintf("%d.%d.0", parsed.Major(), parsed.Minor())
	}
	switch {
	case older(minor(own), minor(installed)):
		return 1
	case older(minor(installed), minor(own)):
		return -1
	}
	return 0
}

// mayInstallAgent checks the permissions to install an agent.
func (c *checked) mayInstallAgent() []check {
	return []check{c.may("install the agent",
		right{"create", "", "namespaces", ""}, right{"create", "", "secrets", naming.SystemNamespace},
		right{"create", "rbac.authorization.k8s.io", "clusterrolebindings", ""},
		right{"escalate", "rbac.authorization.k8s.io", "clusterroles", ""})}
}

// agentRuns checks that agents of either kind are running, and names their hub.
func (c *checked) agentRuns() []check {
	return []check{{"agent", false, func(ctx context.Context) (string, error) {
		var run, wrong []string
		for _, agent := range []types.NamespacedName{clusterAgent, memberAgent} {
			says, found, err := c.agent(ctx, agent)
			switch {
			case errors.As(err, &notAsked{}):
				return "", err
			case err != nil:
				wrong = append(wrong, err.Error())
			case found:
				run = append(run, says)
			}
		}
		switch {
		case len(wrong) > 0:
			return "", errors.New(strings.Join(append(wrong, run...), "; "))
		case len(run) > 0:
			return strings.Join(run, "; "), nil
		}
		return "none is installed", nil
	}}}
}

// saysJoined begins the message of a joined agent. The replaced Pod may still be ending.
const saysJoined = "joined as "

func (c *checked) agent(ctx context.Context, agent types.NamespacedName) (says string, found bool, err error) {
	var cause *rollout.Cause
	ready, looked := false, false
	// an upgrade may be replacing the agent
	_ = wait.PollUntilContextTimeout(ctx, lookEvery, startsWithin, true, func(ctx context.Context) (bool, error) {
		isCause, isReady, unseen := c.causeOf(ctx, agent.Namespace, agent.Name)
		if unseen != nil && ctx.Err() != nil && looked { // for an interrupted read, the read before counts
			return false, unseen
		}
		cause, ready, err, looked = isCause, isReady, unseen, true
		return ready || cause != nil && cause.Reason == rollout.Gone, err
	})
	status := ""
	if err == nil && !ready && cause == nil {
		status = view.Or(c.agentSays(ctx, agent))
	}
	switch {
	case err != nil:
		return "", false, notAsked{fmt.Errorf("checking whether an agent is running: %w", err)}
	case ready, strings.HasPrefix(status, saysJoined):
		deployment := &appsv1.Deployment{}
		if err := c.Get(ctx, agent, deployment); err != nil {
			return "", false, notAsked{fmt.Errorf("reading the agent: %w", err)}
		}
		return fmt.Sprintf("Deployment %s runs %s%s%s", agent, imageOfDeployment(deployment), c.agentsHub(ctx, deployment),
			besideOwn(deployment, version.Semantic(version.Version))), true, nil
	case cause == nil:
		return "", true, fmt.Errorf("the agent %s runs and has not joined: %s", agent, status)
	case cause.Reason == rollout.Gone:
		return "", false, nil
	}
	return "", true, fmt.Errorf("the agent %s does not run: %s", agent, cause.Message)
}

// besideOwn compares the minor version of Muster's agent with this program's. Agents of other
// projects have their own versions.
func besideOwn(agent *appsv1.Deployment, own string) string {
	ours := agent.Labels["app.kubernetes.io/part-of"] == "muster" // a label of the agents' charts
	switch by := differ(tagOf(imageOfDeployment(agent)), own); {
	case ours && by > 0:
		return fmt.Sprintf(", newer than muster %s: use muster of its version", own)
	case ours && by < 0:
		return fmt.Sprintf(", older than muster %s: its hub upgrades the agent of a Cluster, and muster join upgrades any agent", own)
	}
	return ""
}

// agentsHub names the hub of an agent, if the user may read it.
func (c *checked) agentsHub(ctx context.Context, agent *appsv1.Deployment) string {
	if agent.Name == memberAgent.Name {
		return hubOfMemberAgent(agent)
	}
	is, err := c.installedFor(ctx)
	if err != nil || is.server == "" {
		return ""
	}
	return fmt.Sprintf(", as Cluster %s of the hub at %s", is.record, is.server)
}

// hubOfMemberAgent names the hub of a MemberCluster's agent, Muster's or KubeFleet's.
func hubOfMemberAgent(deployment *appsv1.Deployment) string {
	given := map[string]string{}
	for _, container := range deployment.Spec.Template.Spec.Containers {
		for _, variable := range container.Env {
			given[variable.Name] = variable.Value
		}
	}
	if given["HUB_SERVER_URL"] == "" {
		return ""
	}
	return fmt.Sprintf(", as MemberCluster %s of the hub at %s", given["MEMBER_CLUSTER_NAME"], given["HUB_SERVER_URL"])
}

// installedAgent is the hub of a Cluster's agent, the Cluster, and the credential. Without such
// an agent it is empty.
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
	return installed(secret), nil
}

// installed reads the Secret of an agent.
func installed(secret *corev1.Secret) (agent installedAgent) {
	config, err := clientcmd.Load(secret.Data["kubeconfig"])
	if err != nil {
		return agent // an agent with an unreadable kubeconfig registers again
	}
	for _, of := range config.Clusters {
		agent.server = of.Server
	}
	agent.token = string(secret.Data["token"]) // beside the kubeconfig for Muster's agent, inside for Rancher Fleet's
	for _, user := range config.AuthInfos {
		agent.token = cmp.Or(user.Token, agent.token)
	}
	agent.record = types.NamespacedName{Namespace: string(secret.Data["clusterNamespace"]), Name: string(secret.Data["clusterName"])}
	return agent
}
