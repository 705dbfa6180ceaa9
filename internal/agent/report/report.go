// Package report reports the state of the member to the hub: its nodes and their resources, the
// names of its namespaces, its version and health. It also reports the departure of the member, at
// the request of the hub.
//
// Its invariant: it is the only writer of the status of the InternalMemberCluster. It writes at
// most once per 10 s, unless the hub waits for an answer, and at least once per hour. Equal
// observations cost one write, and changes of Pods alone one in a heartbeat period.
//
// The hub cannot verify the reported numbers.
package report

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/kubeclient"
	"github.com/muster-fleet/muster/internal/logging"
	"github.com/muster-fleet/muster/internal/retry"
)

const (
	// firstLists bounds the wait of the first report for the lists of nodes, pods and namespaces.
	firstLists = 5 * time.Second
	// versionPeriod is the least time between two reads of the version, except before a write.
	versionPeriod = 10 * time.Minute
	// healthPeriod is the least time between two health checks of a healthy API server. Heartbeats 30
	// s apart come up to 5 % early, and each of them still checks.
	healthPeriod = 25 * time.Second
)

// Member is the reported cluster.
type Member interface {
	// Ready returns nil if the API server is ready.
	Ready(context.Context) error
	// Version returns the version of the API server.
	Version(context.Context) (string, error)
	// FollowNodes keeps store equal to the nodes until the context ends.
	FollowNodes(ctx context.Context, store cache.ReflectorStore, outcome func(error))
	// FollowPods keeps store equal to the scheduled pods, except ended ones.
	FollowPods(ctx context.Context, store cache.ReflectorStore, outcome func(error))
	// FollowNamespaces keeps store equal to the namespaces.
	FollowNamespaces(ctx context.Context, store cache.ReflectorStore, outcome func(error))
	// FollowClusterProperties keeps store equal to the ClusterProperties.
	FollowClusterProperties(ctx context.Context, store cache.ReflectorStore, outcome func(error))
	// FollowFacts keeps store equal to the ConfigMap with custom facts.
	FollowFacts(ctx context.Context, store cache.ReflectorStore, outcome func(error))
}

// Session is the part of a report about the agent itself.
type Session struct {
	// Report is the hub's copy of the report.
	Report *clusterv1beta1.InternalMemberCluster
	// Hub is the agent's connection to the hub.
	Hub clusterv1beta1.HubInUse
	// ReadyToLeave is set once a leaving member may leave. LeaveProgress is its progress.
	ReadyToLeave  bool
	LeaveProgress string
	// Unpruned names objects deleted on the hub but still on the member.
	Unpruned Unpruned
	// Note is further information for the hub besides the join; empty if there is none.
	Note string
	// Credential is the credential in use; nil if it is unknown to the agent.
	Credential *clusterv1beta1.CredentialInUse
	// Refused is the term obeyed by a member that refuses the hub; nil if it obeys the hub.
	Refused *clusterv1beta1.HubTerm
}

// Reporter reports until its context ends.
type Reporter struct {
	Member Member
	// Write applies a status to the report.
	Write func(context.Context, clusterv1beta1.InternalMemberClusterStatus) error
	// Remove removes fields, named by JSON pointers, from the report in the given resourceVersion.
	Remove func(ctx context.Context, resourceVersion string, pointers []string) error
	// Observe returns the agent's own part of the report. Changed wakes the reporter after a possible
	// change of it.
	Observe func() Session
	Changed <-chan struct{}
	// HealthDue wakes the reporter at each heartbeat to check the health of the member again.
	HealthDue <-chan struct{}
	// Left is called once the hub accepts the first departure report.
	Left func()
	// Farewell is the reason for leaving, if the hub did not request it.
	Farewell string
	// Explain returns the message of an error for the log.
	Explain func(error) string
	// AgentVersion is the version of this program, AgentNamespace its namespace.
	AgentVersion, AgentNamespace string
	// AgentKey is the public key of the agent; nil if it has none.
	AgentKey []byte
	// Features are the capabilities of this agent that other agents may lack.
	Features []string
	Clock    clock.Clock

	changed    chan struct{}
	nodes      *nodes
	pods       *pods
	namespaces *namespaces
	custom     *custom
	// report is the hub's copy as last observed, facts the content to report, written the content of
	// the last write.
	report         *clusterv1beta1.InternalMemberCluster
	facts, written facts
	last           time.Time
	before         []metav1.Condition
	// collectedBefore is the last reported condition about the collection of namespaces.
	collectedBefore metav1.Condition
	// healthAt is the time of the last health check of the member's API server. doubted signals the
	// failure of a watch on the member.
	healthAt time.Time
	// versionAt is the time of the last read of the member's version.
	versionAt time.Time
	health    membership.Streak
	doubted   chan struct{}
	outage    logging.Outage
	retryAt   time.Time
	backoff   wait.Backoff
}

// Run reports at once, on changes, and after 60 heartbeat periods without one.
func (r *Reporter) Run(ctx context.Context) {
	r.changed, r.doubted, r.backoff = make(chan struct{}, 1), make(chan struct{}, 1), retry.Unreachable()
	r.nodes, r.pods, r.namespaces = newNodes(r.changed), newPods(r.changed), newNamespaces(r.changed)
	r.custom = newCustom(r.changed)
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { r.Member.FollowNodes(ctx, r.nodes, r.failures(ctx, "nodes")) })
	watching.Go(func() { r.Member.FollowPods(ctx, r.pods, r.failures(ctx, "pods")) })
	both := func(first, second func(error)) func(error) {
		return func(err error) {
			first(err)
			second(err)
		}
	}
	watching.Go(func() {
		r.Member.FollowNamespaces(ctx, r.namespaces, both(r.failures(ctx, "namespaces"), r.namespaces.watched))
	})
	watching.Go(func() {
		r.Member.FollowClusterProperties(ctx, r.custom.properties, both(r.failures(ctx, "clusterproperties"), r.custom.propertiesWatched))
	})
	watching.Go(func() {
		r.Member.FollowFacts(ctx, r.custom.configMap, both(r.failures(ctx, "the ConfigMap of facts"), r.custom.configMapWatched))
	})
	defer func() {
		cancel()
		watching.Wait()
	}()
	r.observe() // the first check must know the thresholds
	r.checkHealth(ctx)
	started := r.Clock.Now()
	for ctx.Err() == nil {
		r.observe()
		due := r.due()
		if r.last.IsZero() && due.IsZero() && !r.facts.complete() && !r.facts.left {
			due = started.Add(firstLists)
		}
		now := r.Clock.Now()
		if !due.After(now) {
			r.readVersion(ctx)
			r.write(ctx, now)
			continue
		}
		timer := r.Clock.NewTimer(due.Sub(now))
		select {
		case <-ctx.Done():
		case <-r.changed:
		case <-r.Changed:
		case <-r.HealthDue:
			r.onHeartbeat(ctx)
		case <-r.doubted:
			if !r.health.Pending() { // else only heartbeats count, because many watches may fail at once
				r.checkHealth(ctx)
			}
		case <-timer.C():
		}
		timer.Stop()
	}
}

// observe takes over the latest observations.
func (r *Reporter) observe() {
	session := r.Observe()
	if session.Report != nil && session.Report != r.report {
		r.report = session.Report
		r.handleReport()
	}
	f := &r.facts
	f.summary = r.nodes.summary()
	f.summary.available = r.pods.available(f.summary.allocatable)
	f.namespaces, f.custom = r.namespaces.collection(), r.custom.facts()
	f.hub, f.note, f.unpruned, f.credential, f.refused = session.Hub, session.Note, session.Unpruned, session.Credential, session.Refused
	f.left, f.leaving = false, ""
	if r.report != nil && r.report.Spec.State == clusterv1beta1.ClusterStateLeave {
		f.left, f.leaving = session.ReadyToLeave, session.LeaveProgress
	}
}

func (r *Reporter) due() time.Time {
	var period time.Duration
	if r.report != nil {
		period = r.report.HeartbeatPeriod()
	}
	at := due(r.last, r.facts.since(r.written), period, r.kept())
	if r.written.left && r.facts.left {
		// After its departure, a member reports nothing more.
		at = r.Clock.Now().Add(mostRefresh)
	}
	if r.retryAt.After(at) {
		return r.retryAt
	}
	return at
}

// kept reports whether the hub's copy of the report has the last write. An older backup of the
// hub's etcd has not.
func (r *Reporter) kept() bool {
	if r.report == nil {
		return false
	}
	own := clusterv1beta1.FindAgent(r.report.Status.AgentStatus, clusterv1beta1.MemberAgent)
	return own != nil && !own.LastReceivedHeartbeat.Time.Before(r.last.Truncate(time.Second))
}

// handleReport takes over the hub's copy of the report. Conditions from an earlier process keep
// their transition times.
func (r *Reporter) handleReport() {
	r.facts.generation = r.report.Generation
	own := clusterv1beta1.FindAgent(r.report.Status.AgentStatus, clusterv1beta1.MemberAgent)
	switch {
	case own != nil && r.last.IsZero():
		r.before = own.Conditions
		shown := meta.FindStatusCondition(own.Conditions, conditionHealthy)
		if shown != nil && shown.Status == metav1.ConditionFalse && r.report.Spec.HealthCheck != nil {
			r.health, r.facts.unhealthy = membership.Streak{Unhealthy: true}, shown.Message
		}
		if collected := meta.FindStatusCondition(r.report.Status.Conditions, clusterv1beta1.ConditionNamespacesCollected); collected != nil {
			r.collectedBefore = *collected
		}
	case own == nil && !r.last.IsZero():
		// The hub deleted the report and created another. The new one is empty until the agent writes,
		// and the hub may wait for the write.
		r.last, r.written, r.before = time.Time{}, facts{left: r.written.left}, nil
	}
}

// onHeartbeat checks the health and the version of the member's API server, if it is time.
func (r *Reporter) onHeartbeat(ctx context.Context) {
	if r.asksHealth() {
		r.checkHealth(ctx)
	}
	if r.Clock.Since(r.versionAt) >= versionPeriod {
		r.readVersion(ctx)
	}
}

// asksHealth reports whether a heartbeat checks the health. Each one does while the member is
// unhealthy, or the last result differs from the reported health; otherwise one in healthPeriod.
func (r *Reporter) asksHealth() bool {
	return r.health.Unhealthy || r.health.Pending() || r.Clock.Since(r.healthAt) >= healthPeriod
}

// checkHealth checks the health of the member's API server, because it cannot be watched. The hub
// sets how many results in a row change the reported health.
func (r *Reporter) checkHealth(ctx context.Context) {
	r.healthAt = r.Clock.Now()
	err := r.Member.Ready(ctx)
	if ctx.Err() != nil {
		return
	}
	var thresholds *clusterv1beta1.HealthCheck
	if r.report != nil {
		thresholds = r.report.Spec.HealthCheck
	}
	switch r.health = r.health.Add(err != nil, thresholds); {
	case !r.health.Unhealthy:
		r.facts.unhealthy = ""
	case err != nil:
		r.facts.unhealthy = err.Error()
	}
}

// readVersion is part of every write, and of a heartbeat in versionPeriod, because an upgrade
// cannot be watched either.
func (r *Reporter) readVersion(ctx context.Context) {
	r.versionAt = r.Clock.Now()
	if version, err := r.Member.Version(ctx); err == nil {
		r.facts.version = version
	}
}

func (r *Reporter) write(ctx context.Context, now time.Time) {
	status := r.status(r.facts, r.before, now)
	r.dropFormer(ctx, status)
	err := r.Write(ctx, status)
	if ctx.Err() != nil {
		return
	}
	log := logr.FromContextOrDiscard(ctx)
	if err != nil {
		if reason := r.Explain(err); r.outage.IsNews(reason) {
			log.Info("Failed to write the report", "reason", reason)
		}
		r.retryAt = now.Add(r.backoff.Step())
		return
	}
	if r.outage.End() {
		log.Info("Report accepted again")
	}
	r.retryAt, r.backoff = time.Time{}, retry.Unreachable()
	if r.facts.left && !r.written.left {
		r.Left()
	}
	r.last, r.written, r.before = now, r.facts, status.AgentStatus[0].Conditions
	if len(status.Conditions) > 0 {
		r.collectedBefore = status.Conditions[0]
	}
}

// failures logs each cause of a failing watch once. Each triggers a health check.
func (r *Reporter) failures(ctx context.Context, what string) func(error) {
	var outage logging.Outage
	return func(err error) {
		if err == nil {
			outage.End()
		} else if outage.IsNews(err.Error()) {
			logr.FromContextOrDiscard(ctx).Info("Failed to watch objects of the report", "resource", what, "reason", err.Error())
			kubeclient.Notify(r.doubted)
		}
	}
}
