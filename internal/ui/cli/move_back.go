package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// movedBack moves a member back to a Rancher Fleet hub if there is a copy of its credential.
// The Secret of the agent changes on the way; the copy marks a member on its way back.
func (m *migrator) movedBack(ctx context.Context, cluster, hub *checked) (bool, error) {
	kept, err := cluster.kept(ctx)
	if err != nil || kept == nil {
		return false, errors.Join(err, require(ctx, hub.hubRuns()))
	}
	return true, m.moveBack(ctx, cluster, hub, kept)
}

// moveBack restores Rancher Fleet's agent with the credential of its own hub. Each step checks
// for the work of an earlier run. The last step deletes the copy of the credential.
func (m *migrator) moveBack(ctx context.Context, cluster, hub *checked, kept *corev1.Secret) error {
	agent := &migratedAgent{deployment: clusterAgent}
	if err := agent.find(ctx, cluster, agentRelease); err != nil {
		return err
	}
	change, err := m.plan(agent)
	if err != nil {
		return fmt.Errorf("%w; then run this command again to restore the credential", err)
	}
	now, err := cluster.agentSecret(ctx)
	if err != nil {
		return err
	}
	old := readRancherCredential(kept)
	if old == nil {
		return fmt.Errorf("secret %s/%s on %s holds no credential of Rancher Fleet's agent: upgrade release %s with Rancher Fleet's chart and "+
			"the values of a new token of its hub",
			kept.Namespace, kept.Name, cluster.role, agentRelease.chart)
	}
	m.progress.step("%s: it %s", cluster.role, change.says)
	m.progress.step("the cluster returns to the hub at %s, as Cluster %s", old.server, old.cluster)
	if err := m.stillAccepted(ctx, now, kept); err != nil {
		return err
	}
	if m.dryRun {
		if mustRestore(now, kept) {
			m.progress.line("Secret %s/%s would get the credential of Secret %s back.", kept.Namespace, naming.AgentSecret, kept.Name)
		}
		return m.progress.err
	}
	if err := cluster.noteMovedTo(ctx, hub, now, kept); err != nil {
		return err
	}
	if err := m.stopManaging(ctx, hub, old); err != nil {
		return err
	}
	if err := cluster.restore(ctx, now, kept); err != nil {
		return err
	}
	if err := change.do(ctx); err != nil {
		return err
	}
	if err := cluster.awaitDeployment(ctx, &m.progress, agent.deployment.Namespace, agent.deployment.Name, "the agent"); err != nil {
		return err
	}
	return m.endMoveBack(ctx, cluster, kept, old)
}

// endMoveBack deletes the copy once the agent has its content, and prints what remains.
func (m *migrator) endMoveBack(ctx context.Context, cluster *checked, kept *corev1.Secret, old *rancherCredential) error {
	now, err := cluster.agentSecret(ctx)
	if err != nil {
		return err
	}
	if mustRestore(now, kept) { // Muster's agent renewed its credential before its end; the other agent reads again after a minute
		if err := cluster.restore(ctx, now, kept); err != nil {
			return err
		}
	}
	if err := kube.DeleteByUID(ctx, cluster, kept); err != nil {
		return fmt.Errorf("deleting Secret %s/%s, no longer needed by the agent: %w", kept.Namespace, kept.Name, err)
	}
	m.progress.line("%s is Cluster %s of the hub at %s again.", cluster.role, old.cluster, old.server)
	if became := movedTo(kept); became != "" {
		m.progress.line("Cluster %s stays on this hub and becomes Lost. To remove it: muster leave %s --orphan", became, became)
	}
	return m.progress.err
}

// stillAccepted checks whether the earlier hub accepts the agent's next credential, by the
// first request of that agent. An unreachable hub is no error.
func (m *migrator) stillAccepted(ctx context.Context, now, kept *corev1.Secret) error {
	used := now
	if mustRestore(now, kept) {
		used = kept
	}
	credential := readRancherCredential(used)
	if credential == nil {
		return errors.New("the credential of the agent has just changed" + canBeRepeated)
	}
	c, err := client.New(credential.config(), client.Options{Scheme: m.scheme})
	if err == nil {
		err = c.List(ctx, &fleet.BundleDeploymentList{}, client.InNamespace(credential.member))
	}
	switch {
	case apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err):
		return fmt.Errorf("the hub at %s does not accept the credential of Rancher Fleet's agent any more (%w): upgrade release %s with Rancher "+
			"Fleet's chart and the values of a new token of that hub",
			credential.server, err, agentRelease.chart)
	case err != nil:
		m.progress.step("cannot check whether the hub at %s still accepts the agent: %s", credential.server, err)
	}
	return m.progress.err
}

// noteMovedTo notes the Cluster on Muster's hub in the copy of a Secret, before the Secret itself
// changes.
func (c *checked) noteMovedTo(ctx context.Context, hub *checked, now, kept *corev1.Secret) error {
	if now == nil || !mustRestore(now, kept) || movedTo(kept) != "" {
		return nil
	}
	if old := readRancherCredential(kept); old.server == installed(now).server {
		return nil // after a migration in place, the Cluster is the same
	}
	became := types.NamespacedName{Namespace: string(now.Data["clusterNamespace"]), Name: string(now.Data["clusterName"])}
	if err := hub.Get(ctx, became, &fleet.Cluster{}); apierrors.IsNotFound(err) {
		return nil // the hub no longer has the Cluster
	} else if err != nil {
		return fmt.Errorf("reading Cluster %s: %w", became, err)
	}
	if err := kube.Annotate(ctx, c, kept, map[string]any{annotationMovedTo: became.String()}); err != nil {
		return fmt.Errorf("writing annotation %s of Secret %s/%s on %s: %w", annotationMovedTo, kept.Namespace, kept.Name, c.role, err)
	}
	return nil
}

// movedTo returns the Cluster of the member on Muster's hub; empty if the copy has none.
func movedTo(kept *corev1.Secret) string {
	if became := kept.Annotations[annotationMovedTo]; strings.Contains(became, "/") {
		return became
	}
	return ""
}

// restore writes the copied credential to the agent's Secret, without Muster's keys.
func (c *checked) restore(ctx context.Context, now, kept *corev1.Secret) (err error) {
	switch {
	case !mustRestore(now, kept):
		return nil
	case now == nil:
		err = c.Create(ctx, &corev1.Secret{Type: corev1.SecretTypeOpaque, Data: kept.Data,
			ObjectMeta: metav1.ObjectMeta{Namespace: kept.Namespace, Name: naming.AgentSecret}})
	default:
		now.Data = maps.Clone(kept.Data)
		err = c.Update(ctx, now)
	}
	if err != nil {
		return fmt.Errorf("restoring the credential of Rancher Fleet's agent in Secret %s/%s on %s: %w"+canBeRepeated, kept.Namespace,
			naming.AgentSecret, c.role, err)
	}
	return nil
}
