package heartbeat

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/muster-fleet/muster/internal/agent/remote"
)

// silence is after how many periods without a beat another agent's claim ends.
const silence = 3

// Lease is the Lease of a member on the hub.
type Lease interface {
	Lease(context.Context) (remote.Lease, error)
	Beat(ctx context.Context, holder string, now time.Time, since remote.Lease) (remote.Lease, error)
}

// Rival is the error of an agent that does not beat because another one does.
type Rival struct {
	// Holder is the other one.
	Holder string
	// Alive says whether it was seen to beat; if not, it may be gone.
	Alive bool
	// Wait is when to look again.
	Wait time.Duration
	// Left is after how much more silence this agent takes over.
	Left time.Duration
}

// Error says what waits for what.
func (r *Rival) Error() string {
	if r.Alive {
		return fmt.Sprintf("another agent (holder %s) beats for this member; this one waits: stop one of the two, or give each cluster a name of its own", r.Holder)
	}
	return fmt.Sprintf("another agent (holder %s) was the last to beat for this member; this one takes over if it stays silent", r.Holder)
}

// Holder is the name under which an agent beats: it stays the same when a pod restarts and tells clusters apart.
func Holder(clusterID, hostname string) string { return origin(clusterID) + hostname }

// origin is common to the holders of one cluster.
func origin(clusterID string) string {
	const enough = 8
	if len(clusterID) > enough {
		clusterID = clusterID[:enough]
	}
	return clusterID + "_"
}

// Claim is one agent's claim to be the one that beats for its member. It goes by when it saw the Lease change, never by times
// that others wrote. It is used by one goroutine.
type Claim struct {
	Lease Lease
	// ClusterID is the UID of the member's namespace kube-system, Hostname that of the agent's pod.
	ClusterID, Hostname string

	// held says that the last beat was ours, displaced that another one followed it.
	held, displaced bool
	// last is the Lease as it was seen last, at is when it was seen to change, alive that it changed while we looked.
	last  remote.Lease
	at    time.Time
	alive bool
}

// Beat renews the Lease unless another agent holds it; then the error is a *Rival.
func (c *Claim) Beat(ctx context.Context, now time.Time, period time.Duration) error {
	if c.held {
		lease, err := c.Lease.Beat(ctx, c.holder(), now, c.last)
		if !apierrors.IsConflict(err) {
			return c.won(lease, err)
		}
	}
	lease, err := c.Lease.Lease(ctx)
	if apierrors.IsForbidden(err) {
		// A hub of an earlier version lets its members beat, and not look.
		_, err = c.Lease.Beat(ctx, c.holder(), now, remote.Lease{})
		c.held = false
		return err
	}
	if err != nil {
		return err
	}
	if !c.see(lease, now, period) {
		return c.rival(now, period)
	}
	lease, err = c.Lease.Beat(ctx, c.holder(), now, lease)
	return c.won(lease, err)
}

func (c *Claim) holder() string { return Holder(c.ClusterID, c.Hostname) }

func (c *Claim) won(lease remote.Lease, err error) error {
	if err == nil {
		c.held, c.displaced, c.last = true, false, lease
	}
	return err
}

// see judges the Lease as it is now, and says whether it may be taken.
func (c *Claim) see(lease remote.Lease, now time.Time, period time.Duration) bool {
	if lease.Holder == "" || lease.Holder == c.holder() {
		return true
	}
	switch {
	case c.held:
		// Somebody beat after us, so it lives; also if it is of our cluster, where the newer agent goes on.
		c.held, c.displaced, c.alive, c.at = false, true, true, now
	case c.at.IsZero() || lease.Holder != c.last.Holder:
		c.alive, c.at = false, now
	case lease.Version != c.last.Version:
		c.alive, c.at = true, now
	}
	c.last = lease
	// The agent that beat from this cluster before is this one's predecessor.
	predecessor := !c.displaced && c.ClusterID != "" && strings.HasPrefix(lease.Holder, origin(c.ClusterID))
	return predecessor || now.Sub(c.at) >= silence*period
}

func (c *Claim) rival(now time.Time, period time.Duration) *Rival {
	left := silence*period - now.Sub(c.at)
	return &Rival{Holder: c.last.Holder, Alive: c.alive, Left: left, Wait: min(period, left)}
}
