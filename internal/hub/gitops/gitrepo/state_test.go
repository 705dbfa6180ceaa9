package gitrepo

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/gitops/clone"
	"github.com/muster-fleet/muster/internal/hub/gitops/ownbundle"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/testgit"
)

var now = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

func TestWhenARepositoryIsLookedAt(t *testing.T) {
	polled := fleet.GitRepoSpec{}
	never := fleet.GitRepoSpec{DisablePolling: true}
	for name, row := range map[string]struct {
		seen seen
		spec fleet.GitRepoSpec
		want bool
	}{
		"a new one":                         {seen{}, polled, true},
		"a new one without polling":         {seen{}, never, true},
		"before its time":                   {seen{generation: 2, head: "a", next: now.Add(1)}, polled, false},
		"at its time":                       {seen{generation: 2, head: "a", next: now}, polled, true},
		"its spec has changed":              {seen{generation: 1, head: "a", next: now.Add(1)}, polled, true},
		"without polling":                   {seen{generation: 2, head: "a", next: now}, never, false},
		"without polling, its spec changed": {seen{generation: 1, head: "a", next: now.Add(1)}, never, true},
		"without polling, after a failure":  {seen{generation: 2, head: "a", failure: "x", next: now}, never, true},
		"soon after a failure":              {seen{generation: 2, failure: "x", next: now.Add(1)}, polled, false},
	} {
		repo := &fleet.GitRepo{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: row.spec}
		if got := due(&row.seen, repo, now); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestWhenBundlesAreMadeAgain(t *testing.T) {
	cached := func(digest string) fleet.Bundle {
		return fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			"muster/written-by-gitops": `{"spec":"a"}`, "digest of spec": digest}}}
	}
	good, changed := cached("a"), cached("b")
	status := fleet.GitRepoStatus{Commit: "a", ObservedGeneration: 2, Bundles: 1}
	with := func(edit func(*fleet.GitRepoStatus)) fleet.GitRepoStatus {
		s := *status.DeepCopy()
		edit(&s)
		return s
	}
	for name, row := range map[string]struct {
		status  fleet.GitRepoStatus
		bundles []fleet.Bundle
		want    bool
	}{
		"they are as written":    {status, []fleet.Bundle{good}, false},
		"one was changed":        {status, []fleet.Bundle{changed}, true},
		"one is missing":         {status, nil, true},
		"there is a new commit":  {with(func(s *fleet.GitRepoStatus) { s.Commit = "b" }), []fleet.Bundle{good}, true},
		"there is a new spec":    {with(func(s *fleet.GitRepoStatus) { s.ObservedGeneration = 1 }), []fleet.Bundle{good}, true},
		"no commit was read yet": {fleet.GitRepoStatus{}, nil, true},
	} {
		repo := &fleet.GitRepo{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: row.status}
		if got := outdated(repo, row.bundles, "a"); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestTheStatusOfAGitRepo(t *testing.T) {
	ready := func(name string, ok bool, observed int64) fleet.Bundle {
		b := fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}}
		b.Status.ObservedGeneration, b.Status.Summary = observed, fleet.BundleSummary{DesiredReady: 1}
		b.Status.Conditions = []fleet.Condition{kube.Condition(fleet.ConditionReady, ok, "", "NotReady(1) [c1]")}
		return b
	}
	repo := &fleet.GitRepo{Status: fleet.GitRepoStatus{Commit: "a", Bundles: 2}}
	var many []fleet.Bundle
	for i := range 12 {
		many = append(many, ready(fmt.Sprintf("b%02d", i), false, 1))
	}
	for name, row := range map[string]struct {
		repo                     *fleet.GitRepo
		bundles                  []fleet.Bundle
		problem                  *ownbundle.Problem
		condition, reason, parts string
	}{
		"all is ready": {repo, []fleet.Bundle{ready("x", true, 1), ready("y", true, 1)}, nil, "Ready", reasons.Ready, ""},
		"one is not": {repo, []fleet.Bundle{ready("x", true, 1), ready("y", false, 1)}, nil, "Ready",
			reasons.BundlesNotReady, "y: NotReady(1) [c1]"},
		"one was not read": {repo, []fleet.Bundle{ready("x", true, 0), ready("y", true, 1)}, nil, "Ready",
			reasons.BundlesNotReady, "x: the hub has not read it yet"},
		"some are not there": {repo, []fleet.Bundle{ready("x", true, 1)}, nil, "Ready", reasons.BundlesNotReady,
			"1 Bundles have just been written"},
		"many are not":     {repo, many, nil, "Ready", reasons.BundlesNotReady, "b09: NotReady(1) [c1]; and 2 more Bundles"},
		"nothing was read": {&fleet.GitRepo{}, nil, nil, "Ready", reasons.BundlesNotReady, "no commit has been read yet"},
		"a refused field": {repo, nil, &ownbundle.Problem{Condition: ownbundle.ConditionAccepted, Reason: reasons.GitRepoInvalid,
			Message: "m"}, ownbundle.ConditionAccepted, reasons.GitRepoInvalid, "m"},
		"it cannot be reached": {repo, nil, &ownbundle.Problem{Condition: conditionPolling, Reason: reasons.RepositoryUnreachable,
			Message: "m"}, conditionPolling, reasons.RepositoryUnreachable, "m"},
	} {
		before := fleet.GitRepoStatus{Conditions: []fleet.Condition{kube.Condition(fleet.ConditionSupported, false, "", "")}}
		after := describe(before, row.repo, row.bundles, &seen{head: "b"}, ownbundle.Turn{Problem: row.problem}, now)
		got := kube.FindCondition(after.Conditions, row.condition)
		if got == nil || got.Reason != row.reason || !strings.Contains(got.Message, row.parts) {
			t.Errorf("%s: %+v", name, after.Conditions)
		}
		if isReady := kube.FindCondition(after.Conditions,
			readyCondition); (isReady.Status == corev1.ConditionTrue) != (row.reason == reasons.Ready) ||
			kube.FindCondition(after.Conditions, fleet.ConditionSupported) != nil || after.PollingCommit != "b" ||
			after.LastPollingTime == nil {
			t.Errorf("%s: %+v", name, after)
		}
	}
}

func TestWhereCredentialsForChartsGo(t *testing.T) {
	for pattern, want := range map[string]bool{
		"": false, "https://charts": true, "charts": false, "https://charts.example.com$": true,
		"https://other|https://charts": true, "(": false,
	} {
		spec := fleet.GitRepoSpec{HelmSecretName: "charts", HelmRepoURLRegex: pattern}
		if got := sendTo(spec, "https://charts.example.com"); got != want {
			t.Errorf("%q: %t", pattern, got)
		}
	}
}

func TestACommitIsNotReadAgainAtOnce(t *testing.T) {
	r := &reconciliation{Controller: New(Deps{Clock: testclock.NewFakePassiveClock(now)}), seen: &seen{}}
	wait := func(read string, p *ownbundle.Problem) time.Duration {
		r.Problem = p
		r.remember(read)
		return r.Again.Sub(now)
	}
	p := &ownbundle.Problem{}
	for i, want := range []time.Duration{defaultInterval, 2 * defaultInterval, 4 * defaultInterval} {
		if got := wait("a 1", p); got != want {
			t.Errorf("failure %d: %s", i, got)
		}
	}
	if got := wait("b 1", p); got != defaultInterval {
		t.Errorf("another commit: %s", got)
	}
	if got := wait("b 1", nil); got != cacheLag {
		t.Errorf("a success: %s", got)
	}
}

func TestANewProcessDoesNotLookWithoutPolling(t *testing.T) {
	repo := &fleet.GitRepo{ObjectMeta: metav1.ObjectMeta{UID: "a", Generation: 2}, Spec: fleet.GitRepoSpec{DisablePolling: true},
		Status: fleet.GitRepoStatus{Commit: "a", ObservedGeneration: 2}}
	if s := New(Deps{}).seenOf(repo); s.head != "a" || due(s, repo, now) {
		t.Errorf("%+v", s)
	}
	repo.Generation = 3
	if s := New(Deps{}).seenOf(repo); !due(s, repo, now) {
		t.Errorf("after a change: %+v", s)
	}
}

func TestHowLongCredentialsAreKept(t *testing.T) {
	repo := &fleet.GitRepo{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	fresh := seen{generation: 2, head: "a", authenticated: now.Add(-credentialAge + 1)}
	with := func(edit func(*seen)) seen {
		s := fresh
		edit(&s)
		return s
	}
	for name, row := range map[string]struct {
		seen seen
		want bool
	}{
		"read just now":          {fresh, true},
		"read a minute ago":      {with(func(s *seen) { s.authenticated = now.Add(-credentialAge) }), false},
		"the spec has changed":   {with(func(s *seen) { s.generation = 1 }), false},
		"the last look failed":   {with(func(s *seen) { s.failure = "x" }), false},
		"the Secret was refused": {with(func(s *seen) { s.refused = &ownbundle.Problem{} }), false},
		"a new process":          {seen{}, false},
	} {
		if got := row.seen.keeps(repo, now); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestWhichAnnouncedCommitsAreLookedFor(t *testing.T) {
	for name, row := range map[string]struct {
		commit string
		seen   seen
		want   bool
	}{
		"none":                       {"", seen{head: "a"}, false},
		"a new one":                  {"b", seen{head: "a"}, true},
		"the newest one":             {"a", seen{head: "a"}, false},
		"one looked for in vain":     {"b", seen{head: "a", awaited: "b"}, false},
		"by a new process, long ago": {"b", seen{}, true},
	} {
		repo := &fleet.GitRepo{Status: fleet.GitRepoStatus{WebhookCommit: row.commit, LastWebhookTime: &metav1.Time{Time: now.Add(-time.Hour)}}}
		r := &reconciliation{Controller: New(Deps{Clock: testclock.NewFakePassiveClock(now)}), repo: repo, seen: &row.seen}
		if got := r.announced(); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
		if r.awaitCommit(t.Context()); row.want && (row.seen.awaited != row.commit || !r.Again.IsZero()) {
			t.Errorf("%s: it is awaited again: %+v", name, row.seen)
		}
	}
}

// TestARegistryForContentsIsRefused names the field and the remedy, before any request to a server.
func TestARegistryForContentsIsRefused(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := fleet.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	repo := &fleet.GitRepo{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "shop"}}
	repo.Spec.Repo, repo.Spec.OCIRegistrySecret = "https://git.example.com/shop", "registry"
	r := &reconciliation{Controller: New(Deps{Client: fake.NewClientBuilder().WithScheme(scheme).Build()}), repo: repo}
	if err := r.observe(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := r.Problem
	if p == nil || p.Condition != ownbundle.ConditionAccepted || p.Reason != reasons.GitRepoInvalid || r.source != nil {
		t.Fatalf("%+v", p)
	}
	for _, part := range []string{"spec.ociRegistrySecret", "remove the field", "push a chart to a registry"} {
		if !strings.Contains(p.Message, part) {
			t.Errorf("%q does not say %q", p.Message, part)
		}
	}
}

// TestARepositoryThatIsAwayForADay has a server at a closed port, and a second process.
func TestARepositoryThatIsAwayForADay(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), fleet.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	repo := &fleet.GitRepo{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "shop", UID: "u"}}
	repo.Spec.Repo, repo.Status.Commit = "https://"+testgit.FreeAddress(t)+"/shop", "c0ffee"
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(repo).WithStatusSubresource(repo).Build()
	clock := testclock.NewFakePassiveClock(now)
	start := func() *Controller {
		return New(Deps{Client: hub, Live: hub, Clock: clock, Recorder: events.NewFakeRecorder(100), Dialer: clone.Dialer{AllowLoopback: true},
			Apps: clone.NewApps(http.DefaultTransport, clock), SystemNamespace: "system"})
	}
	key, c, versions := client.ObjectKeyFromObject(repo), start(), map[string]bool{}
	for clock.Now().Before(now.Add(24 * time.Hour)) {
		result, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
		if err != nil || result.RequeueAfter < time.Second {
			t.Fatalf("%v, %v", result, err)
		}
		if err := hub.Get(t.Context(), key, repo); err != nil {
			t.Fatal(err)
		}
		versions[repo.ResourceVersion] = true
		if clock.SetTime(clock.Now().Add(result.RequeueAfter)); clock.Since(now).Hours() > 12 {
			c = start()
		}
	}
	want := "checks have failed since 2026-11-28T12:00:00Z: "
	for _, condition := range []string{conditionPolling, readyCondition} {
		is := kube.FindCondition(repo.Status.Conditions, condition)
		if is.Reason != reasons.RepositoryUnreachable || !strings.HasPrefix(is.Message, want) ||
			!strings.HasSuffix(is.Message, "connection refused; deployed objects stay at commit c0ffee") {
			t.Errorf("%s: %+v", condition, is)
		}
	}
	if len(versions) != 1 {
		t.Errorf("the status was written %d times", len(versions))
	}
}

func TestTheMessageOfAFailureIsTheSameEachTime(t *testing.T) {
	for text, want := range map[string]string{
		"read tcp 10.0.0.3:53422->192.0.2.1:443: connection reset by peer": "read tcp 192.0.2.1:443: connection reset by peer",
		"lookup x on 10.0.0.10:53: read udp [::1]:5342->10.0.0.10:53: i/o timeout": "lookup x on 10.0.0.10:53: read udp 10.0.0.10:53: " +
			"i/o timeout",
		"dial tcp 192.0.2.1:443: connect: connection refused": "dial tcp 192.0.2.1:443: connect: connection refused",
	} {
		if got := localAddress.ReplaceAllString(text, "$1 "); got != want {
			t.Errorf("%s becomes %s", text, got)
		}
	}
}
