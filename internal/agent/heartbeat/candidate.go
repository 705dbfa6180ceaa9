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

// takeoverPeriods is after how many periods without a beat of the holder a candidate takes the Lease.
const takeoverPeriods = 3

// Lease is the Lease of a member on the hub.
type Lease interface {
	Lease(context.Context) (hubclient.Lease, error)
	Beat(ctx context.Context, holder string, now time.Time, since hubclient.Lease) (hubclient.Lease, error)
	// MarkWaiting notes on the Lease that an agent waits for its holder.
	MarkWaiting(ctx context.Context, waiter string, now time.Time) error
}

// HeldError says that another agent holds the Lease.
type HeldError struct {
	Holder string
	// Alive says whether the holder was observed to beat; if not, the holder may be gone.
	Alive bool
	// RetryAfter is when to read the Lease again.
	RetryAfter time.Duration
}

// Error says what waits for what.
func (e *HeldError) Error() string {
	if e.Alive {
		return fmt.Sprintf("another agent (holder %s) beats for this member; this one waits: stop one of the two, or give each cluster a name of its own", e.Holder)
	}
	return fmt.Sprintf("another agent (holder %s) was the last to beat for this member; this one takes over if it stays silent", e.Holder)
}

// Holder is the name under which an agent beats. It begins with that of the cluster and of the pod, and ends with one of the process: a copy of a whole
// cluster has the same UIDs and names of pods.
func Holder(clusterID, hostname, process string) string {
	return holderPrefix(clusterID) + hostname + "_" + process
}

// hostnameOf returns the name of the pod in the name of a holder.
func hostnameOf(holder string) string {
	_, rest, _ := strings.Cut(holder, "_")
	hostname, _, _ := strings.Cut(rest, "_") // there is no underscore in the name of a host
	return hostname
}

// holderPrefix is common to the holders of one cluster.
func holderPrefix(clusterID string) string {
	const enough = 8
	return clusterID[:min(len(clusterID), enough)] + "_"
}

// Candidate is an agent that beats while it holds the Lease of its member. A candidate counts from when it observed the Lease change, never from
// times that others wrote. A candidate is used by one goroutine.
type Candidate struct {
	Lease Lease
	// ClusterID is the UID of the member's namespace kube-system, Hostname that of the agent's pod.
	ClusterID, Hostname string
	// Sibling says whether another pod of the agent's own namespace has that hostname: an update replaces one by the other. Nil: there is none.
	Sibling func(ctx context.Context, hostname string) (bool, error)

	// process tells this agent from one in a copy of its cluster.
	process string
	// holding says that the last beat was ours, displaced that another agent's beat followed.
	holding, displaced bool
	// last is the Lease as last read, changedAt when it was observed to change, alive that it changed between two reads.
	last      hubclient.Lease
	changedAt time.Time
	alive     bool
	// markedAt is when this agent last noted on the Lease that it waits.
	markedAt time.Time
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
		// A hub of an earlier version lets its members renew the Lease, and not read it.
		err = c.renew(ctx, now, hubclient.Lease{})
		c.holding = false
		return err
	}
	if err != nil {
		return err
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

// mark tells the hub that this agent waits for one that beats elsewhere. That one of the same Deployment does, until it has replaced this agent or until
// this one has ended, is nothing to be told.
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
	if err == nil {
		c.holding, c.displaced, c.last = true, false, lease
	}
	return err
}

// mayTake stores the Lease as it is now, and says whether this agent may take it.
func (c *Candidate) mayTake(lease hubclient.Lease, now time.Time, period time.Duration) bool {
	if lease.Holder == "" || lease.Holder == c.holder() {
		return true
	}
	switch {
	case c.holding:
		// Another agent beat after us, so it lives; also if it is of our cluster, where the newer agent goes on.
		c.holding, c.displaced, c.alive, c.changedAt = false, true, true, now
	case c.changedAt.IsZero() || lease.Holder != c.last.Holder:
		c.alive, c.changedAt = false, now
	case lease.Renewed != c.last.Renewed: // any other change, such as the mark of one that waits, is no sign of life
		c.alive, c.changedAt = true, now
	}
	c.last = lease
	// The agent that beat from this cluster before is this one's predecessor.
	predecessor := !c.displaced && c.ClusterID != "" && strings.HasPrefix(lease.Holder, holderPrefix(c.ClusterID))
	return predecessor || now.Sub(c.changedAt) >= takeoverPeriods*period
}
