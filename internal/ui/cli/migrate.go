package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	helm "helm.sh/helm/v4/pkg/release/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// What members and hubs can change over from.
const (
	fromRancherFleet = "rancher-fleet"
	fromKubeFleet    = "kubefleet"
)

// migrator is the command muster migrate. Its access is that to the hub.
type migrator struct {
	genericiooptions.IOStreams
	*access
	chartValues
	from                  string
	back, dryRun, authors bool
	// removeLeftovers removes what Rancher Fleet has left of an agent, instead of listing it.
	removeLeftovers bool
	timeout         time.Duration
	progress        progress
}

func newMigrate(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	m := &migrator{IOStreams: streams, access: h}
	command := &cobra.Command{
		Use:   "migrate --from rancher-fleet|kubefleet [MEMBER-CONTEXT...]",
		Short: "Change members, or a hub, over from Rancher Fleet or KubeFleet, and back",
		Long: `migrate puts Muster's agent in the place of the one of Rancher Fleet or KubeFleet on the clusters of some contexts, one after the other, and ends at the first that does not
come about. The member stays the same record with the same labels, and nothing that was delivered is touched. --back puts the agent of before in its place again, by the revision
of its release. The members' hub, to which the current context or --context leads, has to be Muster's. A member of a hub of Rancher Fleet elsewhere moves to it, into the
workspace that --namespace names; its credential stays on the cluster, and --back takes it to the hub where it was.

Without a context of a member it is the hub that changes over. From Rancher Fleet: its Deployments are stopped, and Muster's charts replace its own in its releases. From KubeFleet: KubeFleet's hub agent is stopped, not removed, its webhooks are deleted, which would refuse every
change without it, and the charts of Muster's hub are installed. Members stay joined meanwhile. KubeFleet records no authors of placements, overrides and envelopes,
with whose rights these act on Muster's hub: you become the author of those that have none, unless you give --authors=false.

Given again it goes on where it was; --dry-run says what there is, and what would be done.`,
		Example: `  # The hub of KubeFleet, and then its members one by one.
  muster migrate --from kubefleet --context hub --dry-run
  muster migrate --from kubefleet --context hub
  muster migrate --from kubefleet --context hub edge-1 edge-2

  # The hub of Rancher Fleet, in its place.
  muster migrate --from rancher-fleet --context hub --dry-run
  muster migrate --from rancher-fleet --context hub

  # A cluster with the agent of Rancher Fleet, whose hub is this one or one of Rancher Fleet elsewhere, and back.
  muster migrate --from rancher-fleet --context hub edge-1 --dry-run
  muster migrate --from rancher-fleet --context hub edge-1
  muster migrate --from rancher-fleet --context hub edge-1 --back

  # What Rancher Fleet has left of its agent is removed, too.
  muster migrate --from rancher-fleet --context hub edge-1 --remove-leftovers`,
		ValidArgsFunction: h.contexts,
		RunE: func(command *cobra.Command, args []string) error {
			return interruptible(command.Context(), m.run(command.Context(), args))
		},
	}
	m.addFlags(command, "that is installed")
	flags := command.Flags()
	flags.StringVar(&m.from, "from", "", "what is changed over from: rancher-fleet or kubefleet")
	flags.BoolVar(&m.back, "back", false, "put what was there before in its place again")
	flags.BoolVar(&m.dryRun, "dry-run", false, "only say what there is, and what would be done")
	flags.BoolVar(&m.authors, "authors", true, "become the author of the placements, overrides and envelopes of KubeFleet's hub, which have none")
	flags.BoolVar(&m.removeLeftovers, "remove-leftovers", false, "remove the accounts and rights that Rancher Fleet has left of the agents of these members")
	flags.DurationVar(&m.timeout, "timeout", 5*time.Minute, "how long to wait for each agent, or for the hub")
	complete(command, "from", cobra.FixedCompletions([]cobra.Completion{fromRancherFleet, fromKubeFleet}, cobra.ShellCompDirectiveNoFileComp))
	return command
}

func (m *migrator) validate() error {
	switch {
	case m.from != fromRancherFleet && m.from != fromKubeFleet:
		return fmt.Errorf("say what is changed over from: --from %s or --from %s", fromRancherFleet, fromKubeFleet)
	case m.back && m.areGiven():
		return errors.New("--back puts a release back as it was: leave out --set and --values, and change it by helm upgrade of its chart afterwards")
	case m.removeLeftovers && (m.back || m.from != fromRancherFleet):
		return errors.New("--remove-leftovers removes what Rancher Fleet has left of its agents: give it with --from rancher-fleet, without --back")
	case m.timeout <= 0:
		return errors.New("--timeout is more than 0: what has not come about is not changed over")
	}
	return nil
}

func (m *migrator) run(ctx context.Context, members []string) error {
	if err := m.validate(); err != nil {
		return err
	}
	m.progress = newProgress(m.Out)
	for _, name := range members {
		of := m.in(name, "cluster "+name)
		if _, err := of.ToRESTConfig(); err != nil {
			return of.explainConfig(err)
		}
	}
	hub, err := m.checked()
	if err != nil {
		return err
	}
	checks := hub.reachable()
	if len(members) > 0 && !m.leavesForRancher() {
		checks = append(checks, hub.hubRuns()...)
	}
	if err := require(ctx, checks); err != nil {
		return err
	}
	switch {
	case len(members) == 0 && m.from == fromRancherFleet:
		return m.migrateRancherHub(ctx, hub)
	case len(members) == 0:
		return m.migrateHub(ctx, hub)
	}
	for i, name := range members {
		if err := m.migrateMember(ctx, hub, name); err != nil {
			if after := len(members) - i - 1; after > 0 {
				err = fmt.Errorf("%w; %d more members were not looked at", err, after)
			}
			return err
		}
	}
	return m.progress.err
}

// leavesForRancher reports whether members may go back to a hub of Rancher Fleet, for which Muster's hub need not run.
func (m *migrator) leavesForRancher() bool { return m.back && m.from == fromRancherFleet }

// migrateMember changes the agent of one member.
func (m *migrator) migrateMember(ctx context.Context, hub *checked, name string) error {
	cluster, err := m.in(name, "cluster "+name).checked()
	if err != nil {
		return err
	}
	if err := require(ctx, append(cluster.reachable(), cluster.mayInstallAgent()...)); err != nil {
		return err
	}
	id := ""
	if !m.back {
		if id, err = cluster.tellApart(ctx, hub); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	if m.leavesForRancher() {
		if done, err := m.movedBack(ctx, cluster, hub); done || err != nil {
			return err
		}
	}
	find := m.rancherAgent
	if m.from == fromKubeFleet {
		find = m.kubeFleetAgent
	}
	agent, err := find(ctx, cluster, hub)
	switch from := (*elsewhere)(nil); {
	case errors.As(err, &from) && m.back:
		return m.isBack(ctx, cluster, from)
	case errors.As(err, &from):
		return m.moveHere(ctx, cluster, hub, id, from)
	case err != nil:
		return err
	}
	change, err := m.plan(agent)
	if err != nil {
		return err
	}
	m.progress.step("%s: %s %s", cluster.role, m.title(agent.record), change.says)
	if m.dryRun {
		return m.leftovers(ctx, hub, agent)
	}
	if err := change.do(ctx); err != nil {
		return err
	}
	if err := cluster.awaitDeployment(ctx, &m.progress, agent.deployment.Namespace, agent.deployment.Name, "the agent"); err != nil {
		return err
	}
	if err := m.untilItActs(ctx, hub, agent); err != nil {
		return err
	}
	j := &joiner{IOStreams: m.IOStreams, access: m.access}
	if err := j.show(ctx, hub, agent.record); err != nil {
		return err
	}
	return m.leftovers(ctx, hub, agent)
}

// untilItActs waits until the hub takes the agent that is there now for the one of the member.
func (m *migrator) untilItActs(ctx context.Context, hub *checked, agent *migratedAgent) error {
	unseen, err := await(ctx, &m.progress, func(ctx context.Context) (bool, error) {
		if err := hub.Get(ctx, client.ObjectKeyFromObject(agent.record), agent.record); err != nil {
			return false, fmt.Errorf("what becomes of %s cannot be seen: %w", m.title(agent.record), err)
		}
		native, err := agent.native(ctx)
		if err == nil && native == m.back {
			m.progress.step("the hub waits for the first heartbeat of the agent")
		}
		return native != m.back, err
	})
	switch {
	case wait.Interrupted(err) && unseen != nil:
		return fmt.Errorf("%w"+canBeRepeated, unseen)
	case wait.Interrupted(err):
		return fmt.Errorf("the hub has not heard of the agent of %s within %s: muster explain %s says what it knows; the command can be given again", m.title(agent.record), m.timeout, view.NameOf(agent.record))
	}
	return err
}

// migration is a change of a release.
type migration struct {
	says string
	do   func(context.Context) error
	// to is the revision of another chart to which the release goes back; 0 if there is nothing to do.
	to int
}

// plan says what the release of an agent is, and how it is changed to what it should be.
func (m *migrator) plan(agent *migratedAgent) (migration, error) {
	chart, err := agent.helm.load()
	if err != nil {
		return migration{}, err
	}
	last := agent.revisions[len(agent.revisions)-1]
	has := fmt.Sprintf("has release %s/%s, revision %d, of %s %s", agent.helm.namespace, agent.helm.chart, last.Version, whose(last, chart), last.Chart.Metadata.Version)
	if !m.back {
		given, err := m.over(map[string]any{})
		return migration{fmt.Sprintf("%s, which becomes Muster's %s", has, chart.Metadata.Version), func(ctx context.Context) error { return m.replace(ctx, agent, given) }, 0}, err
	}
	if !isOurs(last, chart) && carriedOut(last) {
		return migration{has + " already", func(context.Context) error { return nil }, 0}, nil
	}
	if agent.stays != "" {
		return migration{}, errors.New(agent.stays)
	}
	for _, r := range slices.Backward(agent.revisions) {
		if carriedOut(r) && !isOurs(r, chart) {
			return migration{fmt.Sprintf("%s, which becomes again what it was with revision %d, %s %s", has, r.Version, whose(r, chart), r.Chart.Metadata.Version), func(ctx context.Context) error {
				return m.putBack(ctx, agent, r.Version)
			}, r.Version}, nil
		}
	}
	return migration{}, fmt.Errorf("release %s/%s keeps no revision of another chart: upgrade it to that with helm, as docs/migration.md says", agent.helm.namespace, agent.helm.chart)
}

// goesOnWith are the values of a release with which Muster's chart goes on. The images of another chart are not among them, and
// neither are those of Muster's chart where they are the defaults: another chart would take them for its own.
func goesOnWith(release *helm.Release, chart *chartv2.Chart) map[string]any {
	set := maps.Clone(release.Config)
	for _, key := range []string{"image", "agentImage"} {
		image, ok := set[key].(map[string]any)
		if !ok {
			continue
		}
		image = maps.Clone(image)
		defaults, _ := chart.Values[key].(map[string]any)
		isDefault := image["repository"] == defaults["repository"] && image["tag"] == defaults["tag"]
		if !isOurs(release, chart) || isDefault {
			delete(image, "repository")
			delete(image, "tag")
		}
		if set[key] = image; len(image) == 0 {
			delete(set, key)
		}
	}
	return set
}

// replace installs Muster's chart in the place of another one of its name, with the values that were set for that.
func (m *migrator) replace(ctx context.Context, agent *migratedAgent, given map[string]any) error {
	if agent.prepare != nil {
		if err := agent.prepare(ctx); err != nil {
			return err
		}
	}
	agent.helm.replaces = true
	made, err := agent.helm.deploy(ctx, given)
	if err != nil {
		return err
	}
	m.progress.step("chart %s %s is installed, revision %d", agent.helm.chart, made.Chart.Metadata.Version, made.Version)
	return m.progress.err
}

// putBack puts the revision of another chart in the place of Muster's.
func (m *migrator) putBack(ctx context.Context, agent *migratedAgent, revision int) error {
	if err := agent.helm.rollBack(ctx, revision); err != nil {
		return err
	}
	left, err := agent.cluster.leftOf(ctx, agent.deployment.Namespace)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		m.progress.line("What Muster's agent had stays, should it come back; to be rid of it: kubectl --context %s -n %s delete %s", agent.cluster.contextName(), agent.deployment.Namespace, strings.Join(left, " "))
	}
	return m.progress.err
}

// leftOf are the objects that Muster's agent has made beside its release, and that no agent of the others has.
func (c *checked) leftOf(ctx context.Context, namespace string) (left []string, err error) {
	for _, o := range []struct{ kind, resource, name string }{
		{"Secret", "secret", naming.AgentKeySecret}, {"Secret", "secret", naming.MemberAgentCredentialSecret}, {"ConfigMap", "configmap", naming.LearnedHubConfigMap},
	} {
		switch err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: o.name}, kube.CoreMetadata(o.kind)); {
		case err == nil:
			left = append(left, o.resource+"/"+o.name)
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("looking what Muster's agent leaves on %s: %w", c.role, err)
		}
	}
	return left, nil
}

// whose says whose a chart is that has the name of one of ours.
func whose(release *helm.Release, chart *chartv2.Chart) string {
	if isOurs(release, chart) {
		return "Muster's"
	}
	return "another chart of that name,"
}
