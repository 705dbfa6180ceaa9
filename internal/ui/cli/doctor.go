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
}

func newDoctor(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	d := &doctor{IOStreams: streams, access: h}
	command := &cobra.Command{
		Use:   "doctor [--context CLUSTER] [--hub-context HUB]",
		Short: "Look whether clusters have what it takes to be a hub, or a member",
		Long: `doctor looks at the cluster of the context, and at the hub of --hub-context: whether its name is known, it takes connections, its certificate can be trusted, its clock and its
version will do and your rights suffice; on a hub, whether the kinds of the fleet are served, somebody leads and muster is of its version; on a member, whether the agent runs and for which hub. It asks
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
		if err := look(d.in(d.hubContext, "the hub"), func(c *checked) []check { return append(c.hubRuns(), c.sameVersion()) }); err != nil {
			return err
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%d of these checks found something wrong", wrong)
	}
	return nil
}

// sameVersion checks that the hub is of the minor version of this program, by the tag of its image.
func (c *checked) sameVersion() check {
	return check{"version", false, func(ctx context.Context) (string, error) {
		deployment := &appsv1.Deployment{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: naming.SystemNamespace, Name: hubDeployment}, deployment); err != nil {
			return "", notAsked{fmt.Errorf("the version of the hub cannot be seen: %w", err)}
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

// imageOfDeployment is what a Deployment runs first; empty if it has no container.
func imageOfDeployment(d *appsv1.Deployment) (image string) {
	for _, container := range d.Spec.Template.Spec.Containers {
		image = cmp.Or(image, container.Image)
	}
	return image
}

func tagOf(image string) string { return image[strings.LastIndex(image, ":")+1:] }

// differ is 1 if a version is of a higher minor one than muster's own, -1 if of a lower one, and 0 if they are alike or one of them is no release.
func differ(has, own string) int {
	minor := func(of string) string {
		parsed, err := semver.ParseSemantic(of)
		if err != nil {
			return of
		}
		return fmt.Sprintf("%d.%d.0", parsed.Major(), parsed.Minor())
	}
	switch {
	case older(minor(own), minor(has)):
		return 1
	case older(minor(has), minor(own)):
		return -1
	}
	return 0
}

// mayInstallAgent checks the rights that it takes to install an agent.
func (c *checked) mayInstallAgent() []check {
	return []check{c.may("install the agent",
		right{"create", "", "namespaces", ""}, right{"create", "", "secrets", naming.SystemNamespace},
		right{"create", "rbac.authorization.k8s.io", "clusterrolebindings", ""}, right{"escalate", "rbac.authorization.k8s.io", "clusterroles", ""})}
}

// agentRuns checks whether an agent runs, of either kind or of both, and for whom.
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

// saysJoined is how an agent begins that has joined, although the Pod that it has replaced may still end.
const saysJoined = "joined as "

func (c *checked) agent(ctx context.Context, agent types.NamespacedName) (says string, found bool, err error) {
	var cause *rollout.Cause
	ready, looked := false, false
	_ = wait.PollUntilContextTimeout(ctx, lookEvery, startsWithin, true, func(ctx context.Context) (bool, error) { // it may be replaced at the moment, by another version
		isCause, isReady, unseen := c.causeOf(ctx, agent.Namespace, agent.Name)
		if unseen != nil && ctx.Err() != nil && looked { // of a look that was cut short the one before counts
			return false, unseen
		}
		cause, ready, err, looked = isCause, isReady, unseen, true
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
		deployment := &appsv1.Deployment{}
		if err := c.Get(ctx, agent, deployment); err != nil {
			return "", false, notAsked{fmt.Errorf("which agent runs cannot be seen: %w", err)}
		}
		return fmt.Sprintf("Deployment %s runs %s%s%s", agent, imageOfDeployment(deployment), c.agentsHub(ctx, deployment), besideOwn(deployment, version.Semantic(version.Version))), true, nil
	case cause == nil:
		return "", true, fmt.Errorf("the agent %s runs and has not joined: %s", agent, said)
	case cause.Reason == rollout.Gone:
		return "", false, nil
	}
	return "", true, fmt.Errorf("the agent %s does not run: %s", agent, cause.Message)
}

// besideOwn says whether an agent of Muster's is of another minor version than muster. Agents of others have versions of their own.
func besideOwn(agent *appsv1.Deployment, own string) string {
	ours := agent.Labels["app.kubernetes.io/part-of"] == "muster" // as the charts of the agents say
	switch by := differ(tagOf(imageOfDeployment(agent)), own); {
	case ours && by > 0:
		return fmt.Sprintf(", which is newer than muster %s: use muster of its version", own)
	case ours && by < 0:
		return fmt.Sprintf(", which is older than muster %s: its hub upgrades the agent of a Cluster, and muster join any agent", own)
	}
	return ""
}

// agentsHub names the hub for which an agent works, if that can be seen.
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

// hubOfMemberAgent names the hub that the agent of a MemberCluster was given, Muster's or KubeFleet's.
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
	return installed(secret), nil
}

// installed reads the Secret of an agent.
func installed(secret *corev1.Secret) (is installedAgent) {
	config, err := clientcmd.Load(secret.Data["kubeconfig"])
	if err != nil {
		return is // an agent that cannot read it joins anew
	}
	for _, of := range config.Clusters {
		is.server = of.Server
	}
	is.token = string(secret.Data["token"]) // Muster's agent keeps it beside the kubeconfig, which Rancher Fleet's has it in
	for _, user := range config.AuthInfos {
		is.token = cmp.Or(user.Token, is.token)
	}
	is.record = types.NamespacedName{Namespace: string(secret.Data["clusterNamespace"]), Name: string(secret.Data["clusterName"])}
	return is
}
