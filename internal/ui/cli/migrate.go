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

// Systems to migrate from.
const (
	fromRancherFleet = "rancher-fleet"
	fromKubeFleet    = "kubefleet"
)

// migrator is the command muster migrate. Its access is to the hub.
type migrator struct {
	genericiooptions.IOStreams
	*access
	chartValues
	from                  string
	back, dryRun, authors bool
	// removeLeftovers removes Rancher Fleet's leftovers of an agent. Otherwise migrate lists
	// them.
	removeLeftovers bool
	timeout         time.Duration
	progress        progress
}

func newMigrate(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	m := &migrator{IOStreams: streams, access: h}
	command := &cobra.Command{
		Use:               "migrate --from rancher-fleet|kubefleet [MEMBER-CONTEXT...]",
		Short:             "Switch a hub or members from Rancher Fleet or KubeFleet",
		Long:              migrateLong,
		Example:           migrateExample,
		ValidArgsFunction: h.contexts,
		RunE: func(command *cobra.Command, args []string) error {
			return interruptible(command.Context(), m.run(command.Context(), args))
		},
	}
	m.addFlags(command, "to install")
	flags := command.Flags()
	flags.StringVar(&m.from, "from", "", "System to replace: rancher-fleet or kubefleet")
	flags.BoolVar(&m.back, "back", false, "Restore the earlier agent or hub")
	flags.BoolVar(&m.dryRun, "dry-run", false, "Print the steps only")
	flags.BoolVar(&m.authors, "authors", true, "Become the author of KubeFleet's placements, overrides and envelopes")
	flags.BoolVar(&m.removeLeftovers, "remove-leftovers", false,
		"Remove the accounts and rights left by Rancher Fleet's agents of these members")
	flags.DurationVar(&m.timeout, "timeout", 5*time.Minute, "Time to wait for each agent, or for the hub")
	complete(command, "from", cobra.FixedCompletions([]cobra.Completion{fromRancherFleet, fromKubeFleet}, cobra.ShellCompDirectiveNoFileComp))
	return command
}

func (m *migrator) validate() error {
	switch {
	case m.from != fromRancherFleet && m.from != fromKubeFleet:
		return fmt.Errorf("the system to replace is missing: use --from %s or --from %s", fromRancherFleet, fromKubeFleet)
	case m.back && m.areGiven():
		return errors.New("--back puts a release back as it was: leave out --set and --values, and change it by helm upgrade of its chart " +
			"afterwards")
	case m.removeLeftovers && (m.back || m.from != fromRancherFleet):
		return errors.New("--remove-leftovers removes what Rancher Fleet has left of its agents: give it with --from rancher-fleet, without " +
			"--back")
	case m.timeout <= 0:
		return errors.New("--timeout must be more than 0")
	}
	return nil
}

func (m *migrator) run(ctx context.Context, members []string) error {
	if err := m.validate(); err != nil {
		return err
	}
	m.progress = m.newProgress(m.Out)
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
		return within(ctx, m.timeout, func(ctx context.Context) error { return m.migrateRancherHub(ctx, hub) })
	case len(members) == 0:
		return within(ctx, m.timeout, func(ctx context.Context) error { return m.migrateHub(ctx, hub) })
	}
	for i, name := range members {
		err := within(ctx, m.timeout, func(ctx context.Context) error { return m.migrateMember(ctx, hub, name) })
		if err != nil {
			if after := len(members) - i - 1; after > 0 {
				err = fmt.Errorf("%w; %d more members were not checked", err, after)
			}
			return err
		}
	}
	return m.progress.err
}

// leavesForRancher reports whether members may go back to a Rancher Fleet hub. Muster's hub
// need not run for that.
func (m *migrator) leavesForRancher() bool { return m.back && m.from == fromRancherFleet }

// migrateMember replaces the agent of one member.
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

// untilItActs waits until the hub recognizes the new agent of the member.
func (m *migrator) untilItActs(ctx context.Context, hub *checked, agent *migratedAgent) error {
	unseen, err := await(ctx, &m.progress, func(ctx context.Context) (bool, error) {
		if err := hub.Get(ctx, client.ObjectKeyFromObject(agent.record), agent.record); err != nil {
			return false, fmt.Errorf("reading the progress of %s: %w", m.title(agent.record), err)
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
		return fmt.Errorf("the hub has received no heartbeat from the agent of %s within %s: run muster explain %s; you can run the command "+
			"again", m.title(agent.record), m.timeout, view.NameOf(agent.record))
	}
	return err
}

// migration is a planned change of a release.
type migration struct {
	says string
	do   func(context.Context) error
	// to is the revision of another chart for the rollback; 0 if there is nothing to do.
	to int
}

// plan describes the release of an agent and its planned change.
func (m *migrator) plan(agent *migratedAgent) (migration, error) {
	chart, err := agent.helm.load()
	if err != nil {
		return migration{}, err
	}
	last := agent.revisions[len(agent.revisions)-1]
	present := fmt.Sprintf("has release %s/%s, revision %d, of %s %s",
		agent.helm.namespace, agent.helm.chart, last.Version, whose(last, chart), last.Chart.Metadata.Version)
	if !m.back {
		given, err := m.over(map[string]any{})
		return migration{fmt.Sprintf("%s, which becomes Muster's %s", present, chart.Metadata.Version),
			func(ctx context.Context) error { return m.replace(ctx, agent, given) }, 0}, err
	}
	if !isOurs(last, chart) && carriedOut(last) {
		return migration{present + " already", func(context.Context) error { return nil }, 0}, nil
	}
	if agent.stays != "" {
		return migration{}, errors.New(agent.stays)
	}
	for _, r := range slices.Backward(agent.revisions) {
		if carriedOut(r) && !isOurs(r, chart) {
			return migration{fmt.Sprintf("%s, which becomes again what it was with revision %d, %s %s",
				present, r.Version, whose(r, chart), r.Chart.Metadata.Version), func(ctx context.Context) error {
				return m.putBack(ctx, agent, r.Version)
			}, r.Version}, nil
		}
	}
	return migration{}, fmt.Errorf("release %s/%s keeps no revision of another chart: upgrade it to that with helm, as docs/migration.md says",
		agent.helm.namespace, agent.helm.chart)
}

// goesOnWith returns the values of a release for Muster's chart. It drops the images of another
// chart, and the default images of Muster's chart: another chart would use them as its own.
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

// replace installs Muster's chart over another chart of the same name, with the values of that
// release.
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

// putBack rolls back to a revision of another chart.
func (m *migrator) putBack(ctx context.Context, agent *migratedAgent, revision int) error {
	if err := agent.helm.rollBack(ctx, revision); err != nil {
		return err
	}
	left, err := agent.cluster.leftOf(ctx, agent.deployment.Namespace)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		m.progress.line("What Muster's agent had stays, should it come back; to be rid of it: kubectl --context %s -n %s delete %s",
			agent.cluster.contextName(), agent.deployment.Namespace, strings.Join(left, " "))
	}
	return m.progress.err
}

// leftOf lists the objects of Muster's agent outside its release. Other agents do not use them.
func (c *checked) leftOf(ctx context.Context, namespace string) (left []string, err error) {
	for _, o := range []struct{ kind, resource, name string }{
		{"Secret", "secret", naming.AgentKeySecret}, {"Secret", "secret", naming.MemberAgentCredentialSecret},
		{"ConfigMap", "configmap", naming.LearnedHubConfigMap}, {"ConfigMap", "configmap", naming.ObeyedTermConfigMap},
	} {
		switch err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: o.name}, kube.CoreMetadata(o.kind)); {
		case err == nil:
			left = append(left, o.resource+"/"+o.name)
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("listing the objects of Muster's agent on %s: %w", c.role, err)
		}
	}
	return left, nil
}

// whose names the owner of a chart with the same name as one of Muster's charts.
func whose(release *helm.Release, chart *chartv2.Chart) string {
	if isOurs(release, chart) {
		return "Muster's"
	}
	return "another chart of that name,"
}
