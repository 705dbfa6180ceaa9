// Package report tells the hub how the member is: its nodes, what they have and what of it is free, its version and health; and
// that the member has left, when the hub asks for that.
//
// Its invariant: it is the only writer of the status of the InternalMemberCluster, at most once per 10 s, unless the hub waits for an
// answer, and at least once per 10 min; two equal observations are one write. The numbers are the member's claims about itself.
package report

import (
	"context"
	"runtime/debug"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/agent/retry"
)

// firstNodes bounds how long the first report waits for the list of nodes.
const firstNodes = 5 * time.Second

// Member is the cluster that is reported.
type Member interface {
	// Ready is nil if the API server is ready.
	Ready(context.Context) error
	// Version of the API server.
	Version(context.Context) (string, error)
	// FollowNodes keeps store equal to the nodes until the context ends.
	FollowNodes(ctx context.Context, store cache.ReflectorStore, outcome func(error))
	// FollowPods does so for the scheduled pods that have not ended.
	FollowPods(ctx context.Context, store cache.ReflectorStore, outcome func(error))
}

// Reporter reports until its context ends.
type Reporter struct {
	Member Member
	// Write applies a status to the report.
	Write func(context.Context, clusterv1beta1.InternalMemberClusterStatus) error
	// Start is the report as the hub had it at first; Asks tells whenever it changed.
	Start *clusterv1beta1.InternalMemberCluster
	Asks  <-chan *clusterv1beta1.InternalMemberCluster
	// Hub is how the agent reaches the hub at first; Hubs tells whenever that changed.
	Hub  clusterv1beta1.HubInUse
	Hubs <-chan clusterv1beta1.HubInUse
	// Check tells when to look at the health of the member again.
	Check <-chan struct{}
	// Departure says of a member that was asked to leave whether it is ready to go, and if not, how far it is. Unpruned is
	// what the member cannot remove though the hub took it away; it may be nil. Departing tells of changes of both.
	Departure func() (ready bool, progress string)
	Unpruned  func() Unpruned
	Departing <-chan struct{}
	// Left is called when a report was accepted that says for the first time that the member has left.
	Left func()
	// Explain words an error for the log.
	Explain func(error) string
	// AgentVersion is that of this program, AgentNamespace where it runs.
	AgentVersion, AgentNamespace string
	// Features are what the agent can do that others cannot.
	Features []string
	Clock    clock.Clock

	changed chan struct{}
	nodes   *nodes
	pods    *pods
	facts   facts
	written facts
	last    time.Time
	before  []metav1.Condition
	// leave says that the hub asks the member to leave.
	leave   bool
	failing bool
	retryAt time.Time
	pace    wait.Backoff
}

// Run reports at once, on changes and every 10 min.
func (r *Reporter) Run(ctx context.Context) {
	r.changed, r.pace = make(chan struct{}, 1), retry.Unreachable()
	r.nodes, r.pods = newNodes(r.changed), newPods(r.changed)
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { r.Member.FollowNodes(ctx, r.nodes, failures(ctx, "nodes")) })
	watching.Go(func() { r.Member.FollowPods(ctx, r.pods, failures(ctx, "pods")) })
	defer func() {
		cancel()
		watching.Wait()
	}()
	r.facts.hub = r.Hub
	r.hear(r.Start)
	r.look(ctx)
	started := r.Clock.Now()
	for ctx.Err() == nil {
		r.facts.summary = r.nodes.summary()
		r.facts.summary.available = r.pods.available(r.facts.summary.allocatable)
		r.facts.left, r.facts.leaving = false, ""
		if r.leave {
			r.facts.left, r.facts.leaving = r.Departure()
		}
		if r.Unpruned != nil {
			r.facts.unpruned = r.Unpruned()
		}
		due := r.due()
		if complete := r.facts.summary.listed && r.facts.summary.available != nil; !complete && r.last.IsZero() && due.IsZero() && !r.facts.left {
			due = started.Add(firstNodes)
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
			timer.Stop()
			return
		case <-r.changed:
		case report := <-r.Asks:
			r.hear(report)
		case <-r.Departing:
		case r.facts.hub = <-r.Hubs:
		case <-r.Check:
			r.look(ctx)
		case <-timer.C():
		}
		timer.Stop()
	}
}

func (r *Reporter) due() time.Time {
	at := due(r.last, !r.facts.equal(r.written), r.facts.urgent(r.written))
	if r.written.left && r.facts.left {
		// A member that has left says no more.
		at = r.Clock.Now().Add(refresh)
	}
	if r.retryAt.After(at) {
		return r.retryAt
	}
	return at
}

// hear takes over what the hub's copy says; conditions written by an earlier process keep their transition times.
func (r *Reporter) hear(report *clusterv1beta1.InternalMemberCluster) {
	if report == nil {
		return
	}
	r.facts.generation = report.Generation
	r.leave = report.Spec.State == clusterv1beta1.ClusterStateLeave
	own := clusterv1beta1.FindAgent(report.Status.AgentStatus, clusterv1beta1.MemberAgent)
	switch {
	case own != nil && r.last.IsZero():
		r.before = own.Conditions
	case own == nil && !r.last.IsZero():
		// The report was deleted and made anew by the hub: it is empty until we write, and somebody may wait for that.
		r.last, r.written, r.before = time.Time{}, facts{left: r.written.left}, nil
	}
}

// look asks the member's API server for what cannot be watched.
func (r *Reporter) look(ctx context.Context) {
	r.facts.unhealthy = ""
	if err := r.Member.Ready(ctx); err != nil && ctx.Err() == nil {
		r.facts.unhealthy = err.Error()
	}
}

// readVersion is part of every write, because an upgrade is nothing that can be watched either.
func (r *Reporter) readVersion(ctx context.Context) {
	if version, err := r.Member.Version(ctx); err == nil {
		r.facts.version = version
	}
}

func (r *Reporter) write(ctx context.Context, now time.Time) {
	status := r.status(r.facts, r.before, now)
	err := r.Write(ctx, status)
	if ctx.Err() != nil {
		return
	}
	if failed := err != nil; failed != r.failing {
		r.failing = failed
		if failed {
			logr.FromContextOrDiscard(ctx).Info("report failing", "reason", r.Explain(err))
		} else {
			logr.FromContextOrDiscard(ctx).Info("report accepted again")
		}
	}
	if err != nil {
		r.retryAt = now.Add(r.pace.Step())
		return
	}
	r.retryAt, r.pace = time.Time{}, retry.Unreachable()
	if r.facts.left && !r.written.left && r.Left != nil {
		r.Left()
	}
	if r.last.IsZero() {
		// Listing the pods took more memory than anything will from now on.
		debug.FreeOSMemory()
	}
	r.last, r.written, r.before = now, r.facts, status.AgentStatus[0].Conditions
}

// failures logs when a watch begins to fail.
func failures(ctx context.Context, what string) func(error) {
	failing := false
	return func(err error) {
		if failed := err != nil; failed != failing {
			failing = failed
			if failed {
				logr.FromContextOrDiscard(ctx).Info("watching "+what+" failing", "reason", err.Error())
			}
		}
	}
}
