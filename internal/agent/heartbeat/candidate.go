package heartbeat

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/muster-fleet/muster/internal/hubclient"
)

// takeoverPeriods is the number of periods without a heartbeat of the holder before a candidate
// takes the Lease.
const takeoverPeriods = 3

// Lease is the Lease of a member on the hub.
type Lease interface {
	Lease(context.Context) (hubclient.Lease, error)
	Beat(ctx context.Context, holder string, now time.Time, since hubclient.Lease) (hubclient.Lease, error)
	// MarkWaiting notes on the Lease that an agent waits for its holder.
	MarkWaiting(ctx context.Context, waiter string, now time.Time) error
}

// HeldError means that another agent holds the Lease.
type HeldError struct {
	Holder string
	// Alive is set if the holder was observed to send heartbeats; if not, the holder may be gone.
	Alive bool
	// RetryAfter is the time until the next read of the Lease.
	RetryAfter time.Duration
}

// Error names the holder and the state of the wait.
func (e *HeldError) Error() string {
	if e.Alive {
		return fmt.Sprintf("another agent (holder %s) sends heartbeats for this member, and this agent waits: stop one of the two, or set "+
			"a different name for each cluster", e.Holder)
	}
	return fmt.Sprintf("another agent (holder %s) sent the last heartbeat of this member; this agent takes over if no other heartbeat "+
		"follows", e.Holder)
}

// Holder returns the name of an agent in the Lease. It begins with the cluster and the Pod. It ends
// with random characters for the process, because a copy of a cluster has the same UIDs and names
// of Pods.
func Holder(clusterID, hostname, process string) string {
	return holderPrefix(clusterID) + hostname + "_" + process
}

// hostnameOf returns the name of the Pod in the name of a holder.
func hostnameOf(holder string) string {
	_, rest, _ := strings.Cut(holder, "_")
	hostname, _, _ := strings.Cut(rest, "_") // a hostname has no underscore
	return hostname
}

// holderPrefix returns the common prefix of the holders of one cluster.
func holderPrefix(clusterID string) string {
	const enough = 8
	return clusterID[:min(len(clusterID), enough)] + "_"
}

// Candidate is an agent that competes for the Lease of its member. It sends heartbeats while it
// holds the Lease. It measures from its own observation of a change of the Lease, never by others'
// times. Only one goroutine uses a candidate.
type Candidate struct {
	Lease Lease
	// ClusterID is the UID of the member's namespace kube-system, Hostname the hostname of the agent's
	// Pod.
	ClusterID, Hostname string
	// Sibling reports whether another Pod of the agent's own namespace has the hostname, as during an
	// update. Nil means that there is none.
	Sibling func(ctx context.Context, hostname string) (bool, error)

	// process distinguishes this agent from one in a copy of its cluster.
	process string
	// holding is set after this agent's heartbeat, displaced if a heartbeat of another agent followed.
	holding, displaced bool
	// last is the last read of the Lease, changedAt the time of its observed change, alive is set if
	// it changed between two reads.
	last      hubclient.Lease
	changedAt time.Time
	alive     bool
	// markedAt is the time of this agent's last note on the Lease.
	markedAt time.Time
	// unanswered is the time of the first failed heartbeat since the last accepted one; zero if none
	// has failed.
	unanswered time.Time
}

// Beat renews the Lease unless another agent holds it; then the error is a *HeldError.
func (c *Candidate) Beat(ctx context.Context, now time.Time, period time.Duration) error {
	if c.holding {
		if err := c.renew(ctx, now, c.last); !apierrors.IsConflict(err) {
			return err
		}
	}
	lease, err := c.Lease.Lease(ctx)
	if apierrors.IsForbidden(err) {
		// A hub of an earlier version lets its members renew the Lease, but not read it.
		err = c.renew(ctx, now, hubclient.Lease{})
		c.holding = false
		return err
	}
	if err != nil {
		return err
	}
	if c.arrived(lease) && now.Sub(c.unanswered) < period {
		c.last, c.unanswered = lease, time.Time{}
		return nil
	}
	if !c.mayTake(lease, now, period) {
		if c.alive && now.Sub(c.markedAt) >= period {
			c.mark(ctx, now)
		}
		left := takeoverPeriods*period - now.Sub(c.changedAt)
		return &HeldError{Holder: c.last.Holder, Alive: c.alive, RetryAfter: min(period, left)}
	}
	return c.renew(ctx, now, lease)
}

func (c *Candidate) holder() string {
	if c.process == "" {
		c.process = rand.String(5)
	}
	return Holder(c.ClusterID, c.Hostname, c.process)
}

// mark notes for the hub that this agent waits for another one elsewhere. An agent of the same
// Deployment needs no note, because one of the two ends soon.
func (c *Candidate) mark(ctx context.Context, now time.Time) {
	if c.Sibling != nil && strings.HasPrefix(c.last.Holder, holderPrefix(c.ClusterID)) {
		if sibling, err := c.Sibling(ctx, hostnameOf(c.last.Holder)); sibling || err != nil {
			return
		}
	}
	c.markedAt = now
	_ = c.Lease.MarkWaiting(ctx, c.holder(), now) // a hub of an earlier version refuses it, and the next attempt may succeed
}

func (c *Candidate) renew(ctx context.Context, now time.Time, since hubclient.Lease) error {
	lease, err := c.Lease.Beat(ctx, c.holder(), now, since)
	switch {
	case err == nil:
		c.holding, c.displaced, c.last, c.unanswered = true, false, lease, time.Time{}
	case c.unanswered.IsZero() && !apierrors.IsConflict(err):
		c.unanswered = now
	}
	return err
}

// arrived reports whether the hub has a heartbeat of this process whose answer was lost, as from an
// overloaded API server.
func (c *Candidate) arrived(lease hubclient.Lease) bool {
	return c.holding && !c.unanswered.IsZero() && lease.Holder == c.holder() && lease.Renewed != c.last.Renewed
}

// mayTake stores the current Lease, and reports whether this agent may take it.
func (c *Candidate) mayTake(lease hubclient.Lease, now time.Time, period time.Duration) bool {
	if lease.Holder == "" || lease.Holder == c.holder() {
		return true
	}
	switch {
	case c.holding:
		// Another agent has taken the Lease from this one, so it is alive. The same applies within one
		// cluster: the newer agent continues.
		c.holding, c.displaced, c.alive, c.changedAt = false, true, true, now
	case c.changedAt.IsZero() || lease.Holder != c.last.Holder:
		c.alive, c.changedAt = false, now
	case lease.Renewed != c.last.Renewed: // any other change, such as the mark of a waiting agent, is no sign of life
		c.alive, c.changedAt = true, now
	}
	c.last = lease
	// The previous agent of this cluster is this one's predecessor.
	predecessor := !c.displaced && c.ClusterID != "" && strings.HasPrefix(lease.Holder, holderPrefix(c.ClusterID))
	return predecessor || now.Sub(c.changedAt) >= takeoverPeriods*period
}
