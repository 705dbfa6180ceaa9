package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// elsewhere is the error for a member of another hub, or of the hub before a migration in
// place.
type elsewhere struct {
	error
	is installedAgent
	// inPlace is the Cluster from the earlier hub; nil for a member of a hub elsewhere.
	inPlace *fleet.Cluster
}

// registeredByRancher reports whether Rancher Fleet's hub created the account of a member's
// agent.
func (c *checked) registeredByRancher(ctx context.Context, record *fleet.Cluster, user string) (bool, error) {
	namespace := membership.Namespace(record)
	account := kube.CoreMetadata("ServiceAccount")
	name := strings.TrimPrefix(user, "system:serviceaccount:"+namespace+":")
	if err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, account); err != nil {
		return false, fmt.Errorf("reading ServiceAccount %s/%s: %w", namespace, name, err)
	}
	return kube.ObjectSetOf(account).ID == rancherRegistration, nil
}

// moveHere moves a member of a Rancher Fleet hub to this hub, like muster move.
func (m *migrator) moveHere(ctx context.Context, cluster, hub *checked, id string, from *elsewhere) error {
	target := m.in(cluster.contextName(), cluster.role)
	target.Namespace = m.Namespace // the workspace
	j := &joiner{IOStreams: m.IOStreams, access: target, chartValues: m.chartValues, hubContext: hub.contextName(), id: id,
		moves: true, timeout: m.timeout,
		progress: m.progress}
	if from.inPlace != nil {
		m.progress.step("%s; its agent registers again under this name", from.error)
		j.name, j.inPlace, target.Namespace = from.inPlace.Name, true, &from.inPlace.Namespace
	} else {
		moves, err := cluster.movesHere(ctx, hub.server, from.is)
		if err != nil {
			return err
		}
		if !moves {
			return from.error
		}
		m.progress.step("%s is Cluster %s of the hub at %s, and moves to this hub with its deliveries",
			cluster.role, from.is.record, from.is.server)
	}
	if err := j.mayReplace(ctx, cluster, hub); err != nil {
		return err
	}
	if m.dryRun {
		m.progress.line("Muster's chart would replace the release %s, and Secret %s/%s would keep the credential of the agent for the way back.",
			agentRelease.chart, naming.SystemNamespace, keptCredential)
		return m.progress.err
	}
	if from.inPlace != nil {
		if err := m.pauseTheirs(ctx, hub, from.inPlace); err != nil {
			return err
		}
	}
	if err := j.joinCluster(ctx, cluster, hub); err != nil || from.inPlace == nil {
		return err
	}
	if err := hub.managesAgain(ctx, from.inPlace); err != nil {
		return err
	}
	return m.leftovers(ctx, hub, &migratedAgent{cluster: cluster, record: from.inPlace, native: func(ctx context.Context) (bool, error) {
		return hub.takesForOurs(ctx, from.inPlace)
	}})
}

// isBack prints that a member is back at the hub of Rancher Fleet, if it is.
func (m *migrator) isBack(ctx context.Context, cluster *checked, from *elsewhere) error {
	helm, err := cluster.helm(agentRelease)
	if err != nil {
		return err
	}
	theirs, err := cluster.hasTheirs(ctx, helm)
	if err != nil {
		return err
	}
	if !theirs {
		return from.error
	}
	m.progress.step("%s is Cluster %s of the hub at %s already, with Rancher Fleet's agent", cluster.role, from.is.record, from.is.server)
	return m.progress.err
}

// movesHere reports whether the agent is Rancher Fleet's and belongs to another hub, or began
// to move on an earlier run.
func (c *checked) movesHere(ctx context.Context, server string, installed installedAgent) (bool, error) {
	if installed.server == server {
		return false, nil
	}
	kept, err := c.kept(ctx)
	if err != nil || kept != nil {
		return kept != nil, err
	}
	helm, err := c.helm(agentRelease)
	if err != nil {
		return false, err
	}
	theirs, err := c.hasTheirs(ctx, helm)
	if err != nil || !theirs {
		return false, err
	}
	now, err := c.agentSecret(ctx)
	return readRancherCredential(now) != nil, err
}

// isTheirs reports whether another chart of the same name owns the release.
func (h *helmOn) isTheirs() (bool, error) {
	chart, err := h.load()
	if err != nil {
		return false, err
	}
	revisions, err := h.history()
	return len(revisions) > 0 && !isOurs(basis(revisions), chart), err
}

// hasTheirs reports whether the agent on a cluster is Rancher Fleet's, by its chart or by its
// marks.
func (c *checked) hasTheirs(ctx context.Context, helm *helmOn) (bool, error) {
	revisions, err := helm.history()
	if err != nil || len(revisions) > 0 {
		theirs, failed := helm.isTheirs()
		return theirs, errors.Join(err, failed)
	}
	imported, err := c.imported(ctx)
	return len(imported) > 0, err
}

// beforeMove prepares the release of the agent. If the release has Rancher Fleet's chart, for
// another hub, muster move keeps the credential for the way back. Muster's chart then replaces
// Rancher Fleet's.
func (j *joiner) beforeMove(ctx context.Context, cluster *checked, helm *helmOn, imported bool) error {
	if !j.leavesHub && !j.inPlace {
		return nil
	}
	theirs, err := helm.isTheirs()
	if err != nil || !theirs && !imported {
		return err
	}
	kept, err := cluster.keepCredential(ctx)
	if err != nil {
		return err
	}
	if kept {
		j.progress.step("Secret %s/%s keeps the credential of Rancher Fleet's agent", naming.SystemNamespace, keptCredential)
		j.former = "" // the copy has the earlier membership
	}
	helm.replaces = true
	return j.progress.err
}

// sayFormer prints the state of the member's earlier Cluster.
func (j *joiner) sayFormer(ctx context.Context, cluster *checked) error {
	if j.former != "" {
		j.progress.line("%s. That hub soon reports that the agent has left. To remove the Cluster there: muster leave", j.former)
	}
	if j.former != "" || !j.moves || j.inPlace {
		return j.progress.err
	}
	kept, err := cluster.kept(ctx)
	if err != nil {
		return err
	}
	if says := formerOf(kept, cluster.contextName(), j.hubContext); says != "" {
		j.progress.line("%s", says)
	}
	return j.progress.err
}

// formerOf describes the Cluster on a Rancher Fleet hub, the way back, and the objects to
// delete.
func formerOf(kept *corev1.Secret, context, hubContext string) string {
	was := readRancherCredential(kept)
	if was == nil {
		return ""
	}
	if hubContext == "" {
		hubContext = "HUB"
	}
	return fmt.Sprintf(`It was Cluster %s of the hub at %s. Rancher Fleet's hub does not notice that the agent is gone,
and shows the Cluster as it was. Deliveries stay on the cluster.
To go back: muster migrate --from rancher-fleet --context %s --back %s
To stay, delete the Cluster on that hub, and the kept credential here:
  kubectl -n %s delete clusters.fleet.cattle.io %s
  kubectl --context %s -n %s delete secret %s`,
		was.cluster, was.server, hubContext, context, was.cluster.Namespace, was.cluster.Name, context, naming.SystemNamespace, keptCredential)
}
