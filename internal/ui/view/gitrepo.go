package view

import (
	"strconv"
	"time"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

// shortCommit is the number of digits of a commit in a table.
const shortCommit = 12

func gitRepoRow(repo *fleet.GitRepo, now time.Time) []string {
	ready := kube.FindCondition(repo.Status.Conditions, fleet.ConditionReady)
	if unsupported := kube.FindCondition(repo.Status.Conditions, fleet.ConditionSupported); ready == nil {
		ready = unsupported // no program reads repositories
	}
	state, message := stateOf(repo, ready)
	commit := repo.Status.Commit
	return []string{NameOf(repo), state, Or(commit[:min(shortCommit, len(commit))]), strconv.Itoa(repo.Status.Bundles),
		Or(repo.Status.Display.ReadyBundleDeployments), Since(repo.CreationTimestamp.Time, now), message}
}
