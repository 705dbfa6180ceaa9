package view

import (
	"cmp"
	"strconv"
	"time"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

// shortCommit is the number of digits of a commit in a table.
const shortCommit = 12

func gitRepoRow(repo *fleet.GitRepo, now time.Time) []string {
	state, message := stateOf(repo, readyOrSupported(repo.Status.Conditions))
	commit := repo.Status.Commit
	return []string{NameOf(repo), state, Or(commit[:min(shortCommit, len(commit))]), strconv.Itoa(repo.Status.Bundles),
		Or(repo.Status.Display.ReadyBundleDeployments), Since(repo.CreationTimestamp.Time, now), message}
}

func helmOpRow(op *fleet.HelmOp, now time.Time) []string {
	state, message := stateOf(op, readyOrSupported(op.Status.Conditions))
	chart := ""
	if helm := op.Spec.Helm; helm != nil {
		chart = cmp.Or(helm.Chart, helm.Repo)
	}
	return []string{NameOf(op), state, Or(chart), Or(op.Status.Version), Or(op.Status.Display.ReadyBundleDeployments),
		Since(op.CreationTimestamp.Time, now), message}
}

// readyOrSupported returns the condition Ready, or Supported if no program reads repositories.
func readyOrSupported(conditions []fleet.Condition) *fleet.Condition {
	if ready := kube.FindCondition(conditions, fleet.ConditionReady); ready != nil {
		return ready
	}
	return kube.FindCondition(conditions, fleet.ConditionSupported)
}
