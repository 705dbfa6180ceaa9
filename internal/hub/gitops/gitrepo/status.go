package gitrepo

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/bundles/rollup"
	"github.com/muster-fleet/muster/internal/hub/gitops/ownbundle"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	readyCondition = fleet.ConditionReady
	// maxNamed bounds the Bundles in a message.
	maxNamed = 10
)

// describe computes the status of a GitRepo.
func describe(before fleet.GitRepoStatus, repo *fleet.GitRepo, bundles []fleet.Bundle, s *seen, turn ownbundle.Turn,
	now time.Time) fleet.GitRepoStatus {
	after := *before.DeepCopy()
	after.Commit, after.Bundles = repo.Status.Commit, repo.Status.Bundles
	after.ObservedGeneration, after.UpdateGeneration = repo.Status.ObservedGeneration, repo.Status.UpdateGeneration
	if s.head != "" && after.PollingCommit != s.head {
		after.PollingCommit = s.head
	}
	if after.PollingCommit != before.PollingCommit {
		after.LastPollingTime = &metav1.Time{Time: now.Truncate(time.Second)}
	}
	after.Summary = fleet.BundleSummary{}
	for i := range bundles {
		rollup.Add(&after.Summary, bundles[i].Status.Summary)
	}
	polling := kube.Condition(conditionPolling, true, reasons.Polled, "")
	if repo.Spec.DisablePolling {
		polling.Reason = reasons.PollingDisabled
	}
	conditions := turn.Conditions(after.Conditions, readiness(bundles, after), polling, now)
	after.Conditions = kube.RemoveCondition(conditions, conditionReconciling)
	after.Display = turn.Display(after.Summary, after.Conditions)
	return after
}

// readiness returns the condition Ready of a GitRepo without a problem.
func readiness(bundles []fleet.Bundle, status fleet.GitRepoStatus) fleet.Condition {
	if status.Commit == "" {
		return kube.Condition(readyCondition, false, reasons.BundlesNotReady, "no commit has been read yet")
	}
	waiting := ownbundle.Waiting(bundles)
	if missing := status.Bundles - len(bundles); missing > 0 {
		waiting = append(waiting, fmt.Sprintf("%d Bundles have just been written", missing))
	}
	if len(waiting) == 0 {
		return ownbundle.Readiness(bundles)
	}
	text := strings.Join(waiting[:min(maxNamed, len(waiting))], "; ")
	if more := len(waiting) - maxNamed; more > 0 {
		text += fmt.Sprintf("; and %d more Bundles", more)
	}
	return kube.Condition(readyCondition, false, reasons.BundlesNotReady, text)
}

// report writes the status, and returns when to look again.
func (r *reconciliation) report(ctx context.Context) (reconcile.Result, error) {
	now := r.Clock.Now()
	after, err := r.writeStatus(ctx, now)
	if err != nil {
		return reconcile.Result{}, err
	}
	r.tell(ctx, after)
	if r.Problem != nil && r.Problem.Condition == ownbundle.ConditionAccepted {
		return reconcile.Result{RequeueAfter: cmp.Or(r.Problem.Again, acceptAgain)}, nil
	}
	next := r.seen.next
	if r.repo.Spec.DisablePolling && r.seen.failure == "" {
		next = time.Time{}
	}
	if next = kube.Earlier(next, r.Again); next.IsZero() {
		return reconcile.Result{}, nil
	}
	return kube.At(next, now), nil
}

// writeStatus writes the status, and returns the GitRepo.
func (r *reconciliation) writeStatus(ctx context.Context, now time.Time) (*fleet.GitRepo, error) {
	commit := r.before.Status.Commit
	return ownbundle.WriteStatus(ctx, ownbundle.Writer{Client: r.Client, Live: r.Live}, kind, r.before,
		func(before *fleet.GitRepo) *fleet.GitRepo {
			if before.Status.Commit != commit { // from another process, after it took over
				return nil
			}
			after := before.DeepCopy()
			after.Status = describe(before.Status, r.repo, r.bundles, r.seen, r.Turn, now)
			return after
		})
}

// acceptAgain is the time until the next look at a Secret, because Secrets are not watched.
const acceptAgain = 15 * time.Second

// tell emits an Event about a new commit, and announces a transition.
func (r *reconciliation) tell(ctx context.Context, after *fleet.GitRepo) {
	if r.before.Status.Commit != after.Status.Commit {
		r.Recorder.Eventf(after, nil, corev1.EventTypeNormal, reasons.GotNewCommit, "Read", "the Bundles are at commit %s", after.Status.Commit)
	}
	r.Announce(ctx, r.Recorder, ownerOf(after), r.before.Status.Conditions, after.Status.Conditions)
}
