package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/agentroles"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// migrateRancherHub replaces a Rancher Fleet hub by Muster's in place, or rolls back. The two
// never run together.
func (m *migrator) migrateRancherHub(ctx context.Context, hub *checked) error {
	theirs, err := m.theirReleases()
	if err != nil {
		return err
	}
	if m.back {
		return m.rancherHubBack(ctx, hub)
	}
	if len(theirs) == 0 {
		return fmt.Errorf("%s has no hub of Rancher Fleet, no release %s of another chart than Muster's in namespace %s: say which members "+
			"change over, by their contexts: muster migrate --from rancher-fleet --context HUB MEMBER-CONTEXT...; or muster init installs a hub",
			hub.role,
			hubCharts()[1].chart, naming.SystemNamespace)
	}
	deployments, err := hub.deploymentsOf(ctx, hubCharts()[1])
	if err != nil {
		return err
	}
	roles, err := agentroles.FindRoles(ctx, hub)
	if err != nil {
		return err
	}
	m.progress.step("Rancher Fleet's hub is release %s", strings.Join(theirs, " and "))
	for _, role := range roles.Theirs {
		m.progress.step("ClusterRole %s of Rancher Fleet is taken over", role.GetName())
	}
	if err := m.sayInvalidNames(ctx, hub); err != nil {
		return err
	}
	install := &initializer{
		IOStreams: m.IOStreams, access: m.access, chartValues: m.chartValues, timeout: m.timeout, dryRun: m.dryRun,
		takesOver: true, replaces: true,
	}
	if m.dryRun {
		for _, d := range deployments {
			m.progress.line("Deployment %s/%s would be scaled to 0.", d.Namespace, d.Name)
		}
		return errors.Join(m.progress.err, install.run(ctx))
	}
	if err := install.mayInstall(ctx, hub); err != nil {
		return err
	}
	if err := m.stopAll(ctx, hub, deployments); err != nil {
		return err
	}
	if err := hub.keepDefinitions(ctx); err != nil {
		return err
	}
	if err := install.run(ctx); err != nil {
		return fmt.Errorf("%w; to run Rancher Fleet's hub again, use --back", err)
	}
	m.progress.line("The members stay registered, with Rancher Fleet's agents. muster migrate --from rancher-fleet MEMBER-CONTEXT changes " +
		"these over.")
	return m.progress.err
}

// theirReleases names the hub's releases of Rancher Fleet's charts.
func (m *migrator) theirReleases() (names []string, err error) {
	for _, r := range hubCharts() {
		helm, err := m.helm(r)
		if err != nil {
			return nil, err
		}
		theirs, err := helm.isTheirs()
		if err != nil {
			return nil, err
		}
		if theirs {
			names = append(names, r.namespace+"/"+r.chart)
		}
	}
	return names, nil
}

// deploymentsOf lists the Deployments of a release by Helm's labels and annotations.
func (c *checked) deploymentsOf(ctx context.Context, r chartRelease) ([]*appsv1.Deployment, error) {
	var list appsv1.DeploymentList
	if err := c.List(ctx, &list, client.InNamespace(r.namespace)); err != nil {
		return nil, fmt.Errorf("finding the Deployments of release %s/%s: %w", r.namespace, r.chart, err)
	}
	var found []*appsv1.Deployment
	for i := range list.Items {
		marks := list.Items[i].Annotations
		if marks["meta.helm.sh/release-name"] == r.chart && marks["meta.helm.sh/release-namespace"] == r.namespace {
			found = append(found, &list.Items[i])
		}
	}
	return found, nil
}

func (m *migrator) stopAll(ctx context.Context, hub *checked, deployments []*appsv1.Deployment) error {
	var rights []right
	for _, d := range deployments {
		rights = append(rights, rightsToStop(client.ObjectKeyFromObject(d))...)
	}
	if err := require(ctx, []check{hub.may("stop the hub", rights...)}); err != nil {
		return err
	}
	for _, d := range deployments {
		if err := m.stop(ctx, hub, d); err != nil {
			return err
		}
	}
	return nil
}

// keepDefinitions makes Helm keep Rancher Fleet's CRDs. Otherwise its chart removes them with
// all their objects.
func (c *checked) keepDefinitions(ctx context.Context) error {
	found, err := c.metadata(ctx, definitions)
	if err != nil {
		return err
	}
	for _, definition := range found {
		if !strings.HasSuffix(definition.Name, "."+fleet.GroupVersion.Group) {
			continue
		}
		if err := kube.Annotate(ctx, c, definition, map[string]any{"helm.sh/resource-policy": "keep"}); err != nil {
			return fmt.Errorf("protecting CustomResourceDefinition %s on %s from Helm: %w", definition.Name, c.role, err)
		}
	}
	return nil
}

// rancherHubBack restores Rancher Fleet's hub. Its members have Rancher Fleet's agents by then.
func (m *migrator) rancherHubBack(ctx context.Context, hub *checked) error {
	if err := hub.noMembersOfMuster(ctx); err != nil {
		return err
	}
	revisions := map[string]int{}
	for _, r := range hubCharts() {
		helm, err := m.helm(r)
		if err != nil {
			return err
		}
		history, err := helm.history()
		if err != nil {
			return err
		}
		if len(history) == 0 {
			return fmt.Errorf("%s has no release %s in namespace %s, so there is no earlier hub to restore", hub.role, r.chart, r.namespace)
		}
		change, err := m.plan(&migratedAgent{helm: helm, revisions: history})
		if err != nil {
			return err
		}
		revisions[r.chart] = change.to
		m.progress.step("%s %s", hub.role, change.says)
	}
	if m.dryRun {
		return m.progress.err
	}
	if err := m.excludeAgents(ctx, hub); err != nil {
		return err
	}
	if revisions[hubCharts()[1].chart] > 0 {
		deployments, err := hub.deploymentsOf(ctx, hubCharts()[1])
		if err != nil {
			return err
		}
		if err := m.stopAll(ctx, hub, deployments); err != nil {
			return err
		}
	}
	for _, r := range slices.Backward(hubCharts()) {
		if revisions[r.chart] == 0 {
			continue
		}
		helm, err := m.helm(r)
		if err != nil {
			return err
		}
		helm.takesOver = true // migrate has scaled the hub
		if err := helm.rollBack(ctx, revisions[r.chart]); err != nil {
			return err
		}
	}
	if err := hub.awaitDeployment(ctx, &m.progress, musterHub.Namespace, musterHub.Name, "Rancher Fleet's hub"); err != nil {
		return err
	}
	return hub.eachManages(ctx)
}

// noMembersOfMuster refuses the rollback while members have Muster's agents: Rancher Fleet's
// hub does not know them.
func (c *checked) noMembersOfMuster(ctx context.Context) error {
	var clusters []*fleet.Cluster
	err := view.Each(ctx, c, &fleet.ClusterList{}, func(o client.Object) {
		if o.GetName() != localCluster {
			clusters = append(clusters, o.(*fleet.Cluster).DeepCopy())
		}
	})
	if err != nil {
		return fmt.Errorf("listing the members with Muster's agent: %w", err)
	}
	var members []string
	for _, cluster := range clusters {
		native, err := c.takesForOurs(ctx, cluster)
		if err != nil {
			return err
		}
		theirs, err := c.rancherBeats(ctx, cluster)
		if err != nil {
			return err
		}
		if native && !theirs {
			members = append(members, view.NameOf(cluster))
		}
	}
	if len(members) == 0 {
		return nil
	}
	slices.Sort(members)
	return fmt.Errorf("%d members have Muster's agent, which Rancher Fleet's hub does not know (%s): change these back first, by muster "+
		"migrate --from rancher-fleet --back MEMBER-CONTEXT",
		len(members), some(members))
}

// rancherBeats reports whether Rancher Fleet's agent has sent a heartbeat since the last Lease
// of Muster's agent. On the way back, it sends heartbeats again with an account of Rancher
// Fleet's hub.
func (c *checked) rancherBeats(ctx context.Context, cluster *fleet.Cluster) (bool, error) {
	lease := &coordinationv1.Lease{}
	name := types.NamespacedName{Namespace: membership.Namespace(cluster), Name: naming.HeartbeatLease}
	if err := c.Get(ctx, name, lease); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading Lease %s: %w", name, err)
	}
	return lease.Spec.RenewTime == nil || cluster.Status.Agent.LastSeen.After(lease.Spec.RenewTime.Time), nil
}
