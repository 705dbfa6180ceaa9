package gitrepo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/gitops/ownbundle"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/repository/scan"
)

const (
	defaultInterval = 15 * time.Second
	minInterval     = time.Second
	// maxBackoff bounds the time between two attempts to read an unreadable repository.
	maxBackoff = 10 * time.Minute
	// cacheLag is the longest time for the cache to show a write.
	cacheLag = 5 * time.Second
	// conditionReconciling is True while a commit is read.
	conditionReconciling = "Reconciling"
	stateUpdating        = "GitUpdating"
	// webhookInterval is the default time between two looks while webhooks announce the commits, as in
	// Rancher Fleet.
	webhookInterval = time.Hour
	// credentialAge is how long a Secret counts after it was read.
	credentialAge = time.Minute
	// visibleWithin is the time for a server to show an announced commit, and visibleAgain the time
	// between two checks for it.
	visibleWithin, visibleAgain = 30 * time.Second, 2 * time.Second
)

// act looks at the repository, and brings the Bundles to its newest commit.
func (r *reconciliation) act(ctx context.Context) error {
	if r.Problem != nil {
		return nil
	}
	announced := r.announced()
	looks := announced || due(r.seen, r.repo, r.Clock.Now())
	if looks {
		if r.waits = !r.lookShares.Enter(r.key()); r.waits {
			return nil
		}
		err := r.look(ctx)
		if r.lookShares.Leave(r.key()); err != nil {
			return err
		}
	}
	if announced {
		r.awaitCommit(ctx)
	}
	if r.seen.refused != nil {
		r.Problem = r.seen.refused
		return nil
	}
	if r.seen.failure != "" {
		r.Fail(conditionPolling, reasons.RepositoryUnreachable, "checks have failed since %s: %s; %s",
			r.seen.since.UTC().Format(time.RFC3339), r.seen.failure, kept(r.repo))
		return nil
	}
	read := fmt.Sprintf("%s %d", r.seen.head, r.repo.Generation)
	switch {
	case r.seen.head == "" || !outdated(r.repo, r.bundles, r.seen.head):
		return nil
	case r.seen.tried == read && r.Clock.Now().Before(r.seen.again):
		r.Problem, r.Again = r.seen.problem, r.seen.again
		return nil
	}
	if r.waits = !r.readShares.Enter(r.key()); r.waits {
		return nil
	}
	defer r.readShares.Leave(r.key())
	if err := r.announce(ctx); err != nil {
		return err
	}
	if !looks {
		if err := r.authenticate(ctx); err != nil || r.Problem != nil {
			return err
		}
	}
	if err := r.read(ctx); err != nil {
		return err
	}
	r.remember(read)
	return nil
}

func (r *reconciliation) key() types.NamespacedName { return client.ObjectKeyFromObject(r.repo) }

// remember notes the attempt to read a commit. After each failure, the next attempt waits longer.
// After a success, the cache gets time to show the Bundles.
func (r *reconciliation) remember(read string) {
	s := r.seen
	if r.Problem == nil || s.tried != read {
		s.attempts = 0
	}
	wait := cacheLag
	if r.Problem != nil {
		wait = min(maxBackoff, defaultInterval<<min(s.attempts, 10))
		s.attempts++
	}
	s.tried, s.problem, s.again = read, r.Problem, r.Clock.Now().Add(wait)
	r.Again = s.again
}

// due reports whether it is time to look at a repository.
func due(s *seen, repo *fleet.GitRepo, now time.Time) bool {
	failed := s.failure != "" || s.refused != nil
	if s.generation != repo.Generation || s.head == "" && !failed {
		return true
	}
	if repo.Spec.DisablePolling && !failed {
		return false
	}
	return !now.Before(s.next)
}

// outdated reports whether the Bundles must be made from a commit.
func outdated(repo *fleet.GitRepo, bundles []fleet.Bundle, head string) bool {
	if repo.Status.Commit != head || repo.Status.ObservedGeneration != repo.Generation {
		return true
	}
	for i := range bundles {
		if !ownbundle.Unchanged(&bundles[i]) {
			return true
		}
	}
	return len(bundles) != repo.Status.Bundles
}

// look reads the newest commit. After failures, the next look is later and later.
func (r *reconciliation) look(ctx context.Context) error {
	s := r.seen
	if s.keeps(r.repo, r.Clock.Now()) {
		r.source.Credentials = s.credentials
	} else {
		if err := r.authenticate(ctx); err != nil {
			return err
		}
		s.credentials, s.authenticated = r.source.Credentials, r.Clock.Now()
	}
	if s.refused = r.Problem; r.Problem != nil {
		s.generation, s.next = r.repo.Generation, r.Clock.Now().Add(cmp.Or(r.Problem.Again, acceptAgain))
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	head, err := r.source.Head(ctx)
	if s.generation != r.repo.Generation {
		s.failures = 0
	}
	s.generation = r.repo.Generation
	interval := r.interval(head)
	if err == nil {
		s.head, s.failure, s.failures, s.since = head, "", 0, time.Time{}
	} else {
		if s.since.IsZero() {
			s.since = failingSince(r.before.Status.Conditions, r.Clock.Now())
		}
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("%s did not answer within %s", r.source.URL.Hostname(), lookTimeout)
		}
		s.failure = localAddress.ReplaceAllString(err.Error(), "$1 ")
		interval = max(interval, min(maxBackoff, interval<<min(s.failures, 10)))
		s.failures++
	}
	spread := 1 + kube.Jitter(r.repo.UID)/10
	s.next = r.Clock.Now().Add(time.Duration(float64(interval) * spread))
	return nil
}

// localAddress matches the operation and the address at this end of a connection. The port differs
// each time, and each change of the message would be a write.
var localAddress = regexp.MustCompile(`\b((?:read|write|dial) [a-z0-9]+) \S+->`)

// failingSince returns the begin of a failure. Another process may have seen it.
func failingSince(conditions []fleet.Condition, now time.Time) time.Time {
	if c := kube.FindCondition(conditions, conditionPolling); c != nil && c.Reason == reasons.RepositoryUnreachable {
		if since, err := time.Parse(time.RFC3339, c.LastTransitionTime); err == nil {
			return since
		}
	}
	return now
}

// keeps reports whether the credentials of the last look still count. They do for a minute, as long
// as they work. Otherwise the looks of an idle GitRepo would read a Secret each.
func (s *seen) keeps(repo *fleet.GitRepo, now time.Time) bool {
	return s.generation == repo.Generation && s.head != "" && s.failure == "" && s.refused == nil &&
		now.Sub(s.authenticated) < credentialAge
}

// interval is the time until the next look.
func (r *reconciliation) interval(head string) time.Duration {
	own := r.repo.Spec.PollingInterval
	switch {
	case own != nil && own.Duration > 0:
		return max(own.Duration, minInterval)
	case head != "" && r.repo.Status.WebhookCommit == head:
		return webhookInterval
	}
	return defaultInterval
}

// announced reports whether a webhook has announced a commit without a failed search for it so far.
// The time does not count: a replica may take over much later.
func (r *reconciliation) announced() bool {
	commit := r.repo.Status.WebhookCommit
	return commit != "" && commit != r.seen.head && commit != r.seen.awaited && r.repo.Status.LastWebhookTime != nil
}

// awaitCommit looks again soon if the server does not show the announced commit yet.
func (r *reconciliation) awaitCommit(ctx context.Context) {
	commit, until := r.repo.Status.WebhookCommit, r.repo.Status.LastWebhookTime.Add(visibleWithin)
	next := r.Clock.Now().Add(visibleAgain)
	switch {
	case r.seen.head == commit || r.seen.refused != nil:
	case next.Before(until):
		r.Again = next
	case r.Clock.Now().After(until.Add(visibleWithin)): // an old announcement, before this process
		r.seen.awaited = commit
	default:
		r.seen.awaited = commit
		r.Recorder.Eventf(r.repo, nil, corev1.EventTypeWarning, reasons.WebhookCommitNotVisible, "Read",
			"a webhook announced commit %s, and the repository does not show it", commit)
		ctrl.LoggerFrom(ctx).Info("The announced commit is not visible yet", "commit", commit)
	}
}

// announce shows that the hub is reading a commit.
func (r *reconciliation) announce(ctx context.Context) error {
	after := r.before.DeepCopy()
	after.Status.PollingCommit, after.Status.Display.State = r.seen.head, stateUpdating
	after.Status.Conditions = kube.SetCondition(after.Status.Conditions, r.Clock.Now(),
		kube.Condition(conditionReconciling, true, "", "reading commit "+r.seen.head))
	if err := kube.PatchStatus(ctx, r.Client, r.before, after); err != nil {
		return err
	}
	r.before = after
	return nil
}

// read makes the Bundles of the newest commit.
func (r *reconciliation) read(ctx context.Context) error {
	select {
	case r.reading <- struct{}{}:
		defer func() { <-r.reading }()
	case <-ctx.Done():
		return ctx.Err()
	}
	limited, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	began := r.Clock.Now()
	wanted := r.repo.DeepCopy()
	wanted.Status.Commit = r.seen.head
	var bundles []*fleet.Bundle
	var broken error
	err := r.source.Read(limited, r.seen.head, func(tree scan.Tree) error {
		bundles, broken = scan.Bundles(limited, wanted, tree, r.fetchChart)
		return nil
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		r.Fail(readyCondition, reasons.CommitUnreadable, "commit %s could not be read within %s; %s", r.seen.head, readTimeout, kept(r.repo))
		return nil
	case err != nil:
		r.Fail(readyCondition, reasons.CommitUnreadable, "%s; %s", err, kept(r.repo))
		return nil
	case broken != nil:
		r.Fail(readyCondition, reasons.CommitUnreadable, "commit %s: %s; no Bundle is deleted before that is corrected", r.seen.head, broken)
	}
	if err := r.write(ctx, r.allowed(bundles)); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("Commit read", "commit", r.seen.head, "bundles", len(bundles),
		"duration", r.Clock.Since(began).Round(time.Millisecond))
	return nil
}

// allowed returns the Bundles without a violation of the GitRepoRestrictions. They copy only
// objects named by a Policy.
func (r *reconciliation) allowed(bundles []*fleet.Bundle) (allowed []*fleet.Bundle) {
	completion := r.restrictions.Completion()
	for _, bundle := range bundles {
		err := r.restrictions.CheckBundle(&bundle.Spec)
		if err == nil {
			err = r.policies.CheckCommit(&bundle.Spec)
		}
		if err != nil {
			r.Fail(readyCondition, reasons.PolicyViolation, "Bundle %s: %s", bundle.Name, err)
			continue
		}
		completion.Apply(&bundle.Spec.BundleDeploymentOptions)
		allowed = append(allowed, bundle)
	}
	return allowed
}

// kept describes the resources on the Clusters while a repository is unreadable.
func kept(repo *fleet.GitRepo) string {
	if repo.Status.Commit == "" {
		return "no commit is deployed yet"
	}
	return "deployed objects stay at commit " + repo.Status.Commit
}
